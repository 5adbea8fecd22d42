"""Where numbers stop being finite: the first layer of a model, found by listening to all of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn


class NotFinite(Exception):
    """Raised at the first value that is not finite; the text says whose it is."""


@contextmanager
def watching(model: nn.Module) -> Iterator[None]:
    """Raise `NotFinite` as soon as a layer gives a value that is not finite; inner layers are heard first."""

    def listen(name: str) -> Any:
        def hook(module: nn.Module, inputs: Any, output: Any) -> None:
            if isinstance(output, Tensor) and output.is_floating_point() and not _finite(output):
                raise NotFinite(f"the output of layer '{name}' ({type(module).__name__})")

        return hook

    hooks = [module.register_forward_hook(listen(name)) for name, module in model.named_modules() if name]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def check_parameters(model: nn.Module, *, gradients: bool) -> None:
    """Raise `NotFinite` at the first parameter that is not finite, or has a gradient that is not."""
    for name, parameter in model.named_parameters():
        if gradients and parameter.grad is not None and not _finite(parameter.grad):
            raise NotFinite(f"the gradient of '{name}' ({_owner(model, name)})")
        if not _finite(parameter):
            raise NotFinite(f"the parameter '{name}' ({_owner(model, name)})")


def _owner(model: nn.Module, name: str) -> str:
    return type(model.get_submodule(name.rpartition(".")[0])).__name__


def _finite(tensor: Tensor) -> bool:
    return bool(torch.isfinite(tensor.detach()).all())
