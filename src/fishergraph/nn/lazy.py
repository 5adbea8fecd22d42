"""What modules are made with: widths, which the first batch decides where they are −1, and options by name."""

from __future__ import annotations

import math
from inspect import Parameter, signature
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter

from fishergraph._validation import check_host_memory, check_integer


def check_widths(in_channels: Any) -> tuple[Any, Any]:
    """(sources, targets): the widths of x, given as one or as a pair."""
    pair = tuple(in_channels) if isinstance(in_channels, (tuple, list)) else (in_channels, in_channels)
    if len(pair) != 2 or not isinstance(pair[0], (int, np.integer)):
        raise ValueError(
            f"in_channels must be a width (-1 takes that of the first input) or a pair of them, got {in_channels!r}; "
            "pass the number of features of x."
        )
    return pair


def check_numbers(shape: tuple[int, ...]) -> None:
    """Raise where a parameter of that shape would not fit into memory."""
    advice = "lower the channels, anchors or heads"
    check_host_memory(4 * math.prod(shape), f"a parameter of shape {shape} needs", "in float32", advice)


def _allocate(shape: tuple[int, ...]) -> Tensor:
    """An empty tensor of a shape that was checked."""
    try:
        return torch.empty(shape)
    except RuntimeError:
        raise MemoryError(
            f"a parameter of the shape {shape} needs {4 * math.prod(shape) / 1e9:.1f} GB, got less memory than that; "
            "lower the channels, anchors or heads."
        ) from None


def check_options(owner: type, options: dict[str, Any], *makers: Any) -> None:
    """Raise for an option that none of the makers takes by its name."""
    taken = [p for maker in makers for p in signature(maker).parameters.values() if p.kind == Parameter.KEYWORD_ONLY]
    known = sorted({parameter.name for parameter in taken})
    for name in options:
        if name not in known:
            raise TypeError(f"{owner.__name__} takes the options {', '.join(known)}, got {name!r}; choose one.")


class LazyChannels(nn.Module):
    """A module with one parameter whose last axis is the input's width, `in_channels`; −1 waits for the first input."""

    in_channels: int
    _waiting: tuple[str, tuple[int, ...]]  # the parameter's name, and its shape without the last axis

    def hold(self, name: str, shape: tuple[int, ...], in_channels: int) -> None:
        """Register the parameter, empty where the width is not known."""
        in_channels = check_integer(in_channels, "in_channels (or -1)", least=-1)
        self.in_channels = in_channels if in_channels == -1 else check_integer(in_channels, "in_channels", least=1)
        self._waiting = (name, shape)
        check_numbers((*shape, max(in_channels, 1)))
        known = in_channels > 0
        held: Any = nn.Parameter(_allocate(self.shape(in_channels))) if known else UninitializedParameter()
        self.register_parameter(name, held)

    def shape(self, in_channels: int) -> tuple[int, ...]:
        """The parameter's shape for an input of that width, which is its last axis."""
        return (*self._waiting[1], in_channels)

    def expect(self, in_channels: int) -> None:
        """Make the parameter for such an input, or raise where the width is another than was promised."""
        if self.in_channels == in_channels:
            return
        if self.in_channels > 0:
            raise ValueError(
                f"x must have {self.in_channels} features, as {type(self).__name__} was made for, got {in_channels}; "
                "pass in_channels=-1 to take the width of the first input."
            )
        shape = self.shape(in_channels)
        check_numbers(shape)
        self.in_channels = in_channels
        getattr(self, self._waiting[0]).materialize(shape)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        raise NotImplementedError

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        name = self._waiting[0]
        if self.in_channels > 0:
            return super()._save_to_state_dict(destination, prefix, keep_vars)
        held = self._parameters.pop(name)  # an empty parameter cannot be detached
        super()._save_to_state_dict(destination, prefix, keep_vars)
        self._parameters[name] = destination[prefix + name] = held

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        given = state_dict.get(prefix + self._waiting[0])
        if given is not None and self.in_channels < 0 and not isinstance(given, UninitializedParameter):
            self.expect(given.shape[-1])
        super()._load_from_state_dict(state_dict, prefix, *rest)
