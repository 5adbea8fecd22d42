"""Widths of modules: parameters whose last axis is the input width, which the first input decides if it is −1."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.parameter import UninitializedParameter

from fishergraph._errors import InputError, NotEnoughMemory
from fishergraph._validation import check_host_memory, check_integer

_ADVICE = "lower the channels, anchors or heads"


def check_widths(in_channels: Any) -> tuple[Any, Any]:
    """The widths of sources and targets, passed as one or as a pair."""
    pair = tuple(in_channels) if isinstance(in_channels, (tuple, list)) else (in_channels, in_channels)
    if len(pair) != 2 or not all(isinstance(width, (int, np.integer)) for width in pair):
        expected = "be a number of features (-1 takes that of the first input) or a pair of them"
        raise InputError(parameter="in_channels", value=in_channels, expected=expected)
    return pair


def check_size(shape: tuple[int, ...]) -> None:
    """Raise if a parameter of that shape does not fit into memory."""
    check_host_memory(4 * math.prod(shape), f"a parameter of shape {shape} needs", "in float32", _ADVICE)


@contextmanager
def allocating(shape: tuple[int, ...]) -> Iterator[None]:
    """A block that makes parameters of a shape that was checked; a failed allocation is a `NotEnoughMemory`."""
    try:
        yield
    except RuntimeError:
        raise NotEnoughMemory(
            f"a parameter of shape {shape} needs {4 * math.prod(shape) / 1e9:.1f} GB, got less memory; {_ADVICE}.",
            needed=4 * math.prod(shape),
        ) from None


class LazyChannels(nn.Module):
    """A module with one parameter whose last axis is `in_channels`; −1 waits for the first input."""

    in_channels: int
    _waiting: tuple[str, tuple[int, ...]]  # the name of the parameter, and its shape without the last axis

    def _hold(self, name: str, shape: tuple[int, ...], in_channels: int) -> None:
        """Register the parameter, uninitialised if the width is not known."""
        in_channels = check_integer(in_channels, "in_channels (or -1)", least=-1)
        self.in_channels = in_channels if in_channels == -1 else check_integer(in_channels, "in_channels", least=1)
        self._waiting = (name, shape)
        check_size((*shape, max(in_channels, 1)))
        has_width = in_channels > 0
        with allocating((*shape, in_channels)):
            held: Any = nn.Parameter(torch.empty(self._shape(in_channels))) if has_width else UninitializedParameter()
        self.register_parameter(name, held)

    def _shape(self, in_channels: int) -> tuple[int, ...]:
        """The shape of the parameter for an input of that width."""
        return (*self._waiting[1], in_channels)

    def expect(self, in_channels: int) -> None:
        """Make the parameter for such an input, or raise if the module has another width.

        Parameters
        ----------
        in_channels : int
            Number of features of the input.
        """
        if self.in_channels == in_channels:
            return
        if self.in_channels > 0:
            expected = f"have {self.in_channels} features, as {type(self).__name__} was made for"
            advice = "pass in_channels=-1 to take the width of the first input"
            raise InputError(parameter="x", expected=expected, got=str(in_channels), advice=advice)
        shape = self._shape(in_channels)
        check_size(shape)
        self.in_channels = in_channels
        with allocating(shape):
            getattr(self, self._waiting[0]).materialize(shape)
        self.reset_parameters()

    def change(self, in_channels: int) -> None:
        """Make the parameter anew, for an input of another width.

        Parameters
        ----------
        in_channels : int
            Number of features of the input.
        """
        name = self._waiting[0]
        old, self.in_channels = getattr(self, name), -1
        waiting: Any = UninitializedParameter
        self.register_parameter(name, waiting(device=old.device, dtype=old.dtype))
        self.expect(in_channels)

    def reset_parameters(self) -> None:
        """Draw the parameters again."""
        raise NotImplementedError

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        name = self._waiting[0]
        if self.in_channels > 0:
            return super()._save_to_state_dict(destination, prefix, keep_vars)
        held = self._parameters.pop(name)  # an uninitialised parameter cannot be detached
        super()._save_to_state_dict(destination, prefix, keep_vars)
        self._parameters[name] = destination[prefix + name] = held

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        value = state_dict.get(prefix + self._waiting[0])
        if value is not None and self.in_channels < 0 and not isinstance(value, UninitializedParameter):
            self.expect(value.shape[-1])
        super()._load_from_state_dict(state_dict, prefix, *rest)
