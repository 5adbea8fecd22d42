"""Generated code that Numba's Python does not express: vectors of a chosen width, and prefetches.

All of it runs while code is generated.
"""

from __future__ import annotations

from contextlib import contextmanager

from llvmlite import ir
from numba.core import cgutils

INDEX, _WORD = ir.IntType(64), ir.IntType(32)


def as_index(builder, value):
    """An integer in 64 bits."""
    return builder.sext(value, INDEX) if value.type.width < 64 else value


class Rows:
    """The rows of a C-ordered array; an array of one axis is a row."""

    def __init__(self, context, builder, kind, value):
        array = context.make_array(kind)(context, builder, value)
        self.builder, self.data = builder, array.data
        lengths = cgutils.unpack_tuple(builder, array.shape, kind.ndim)
        self.length = lengths[-1]  # of the last axis
        self.size = INDEX(1)  # of one row
        for length in lengths[1:]:
            self.size = builder.mul(self.size, length)

    def at(self, row, offset):
        """A pointer to the element `offset` of a row."""
        return self.builder.gep(self.data, [self.builder.add(self.builder.mul(row, self.size), offset)])


class Members:
    """The points of the entries of multisets."""

    def __init__(self, context, builder, kind, value):
        array = context.make_array(kind)(context, builder, value)
        self.builder, self.data = builder, array.data
        self.last = builder.sub(cgutils.unpack_tuple(builder, array.shape)[0], INDEX(1))

    def of(self, entry):
        """The point of an entry."""
        return as_index(self.builder, self.builder.load(self.builder.gep(self.data, [entry])))

    def after(self, entry, ahead):
        """The point of the entry `ahead` entries later, or of the last entry."""
        later = self.builder.add(entry, ahead)
        return self.of(self.builder.select(self.builder.icmp_signed("<", later, self.last), later, self.last))


def prefetch(builder, pointer):
    """Prefetch the cache line of a pointer."""
    byte = ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [byte, _WORD, _WORD, _WORD])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
    # for reading, kept in the second-level cache, data
    builder.call(function, [builder.bitcast(pointer, byte), _WORD(0), _WORD(2), _WORD(1)])


def vector_tools(builder, real, lanes):
    """(load, store, broadcast, fma) of vectors with `lanes` lanes."""
    vector, bits = ir.VectorType(real, lanes), 32 if isinstance(real, ir.FloatType) else 64
    kind = ir.FunctionType(vector, [vector] * 3)
    fma = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fma.v{lanes}f{bits}")
    undefined, first = ir.Constant(vector, ir.Undefined), ir.Constant(ir.VectorType(_WORD, lanes), None)

    def load(pointer):
        value = builder.load(builder.bitcast(pointer, vector.as_pointer()))
        value.align = bits // 8  # rows are not aligned
        return value

    def store(value, pointer):
        builder.store(value, builder.bitcast(pointer, vector.as_pointer())).align = bits // 8

    def broadcast(value):
        return builder.shuffle_vector(builder.insert_element(undefined, value, _WORD(0)), undefined, first)

    return load, store, broadcast, lambda a, b, c: builder.call(fma, [a, b, c])


@contextmanager
def each_entry(builder, start, stop):
    """A loop over the entries start … stop − 1, which LLVM must not unroll: most multisets have few members."""
    with cgutils.for_range_slice(builder, start, stop, INDEX(1)) as (entry, _):
        yield entry
        last = builder.basic_block
    rules = builder.module.add_metadata([None, ["llvm.loop.unroll.disable"]])
    rules.operands = (rules, rules.operands[1])  # LLVM ignores rules that do not begin with themselves
    last.terminator.set_metadata("llvm.loop", rules)


def widened(builder, vector):
    """A vector of floats in float64."""
    wide = ir.VectorType(ir.DoubleType(), vector.type.count)
    return vector if vector.type == wide else builder.fpext(vector, wide)
