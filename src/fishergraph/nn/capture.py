"""CUDA graphs of an epoch: on a small graph the GPU would wait for the host, which launches hundreds of kernels.

The forward and backward pass of the step is one graph, the measures are another; the optimiser runs as ever. A replay
does what the launches did, with the same numbers and the same draws of dropout. What waits for the device, as a
transport E-step does, cannot be captured, nor can what Python decides anew in every epoch: so only a `FisherNet` of
Gaussian mixtures is, on dense rows of a whole graph, without hooks. A capture that fails costs nothing but its time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from fishergraph.nn.batches import FullBatch
from fishergraph.nn.mixture import Mixture
from fishergraph.nn.models import FisherNet
from fishergraph.nn.rows import is_sparse
from fishergraph.ops.tensor_sets import TensorSets

_log = logging.getLogger(__name__)

# Epochs before the capture: they compile kernels and fill caches.
WARM_UP = 2
# A run of fewer epochs gains nothing; on a larger graph the host is ahead of the GPU.
_LEAST_EPOCHS, _MOST_ENTRIES = 8, 1 << 22
# Captures that broke off and could not be ended: PyTorch's allocator refers to them as long as the process lives.
_broken: list[Any] = []


@dataclass(frozen=True)
class EpochGraphs:
    """The captured step and measures, and the tensors that a replay writes."""

    step: torch.cuda.CUDAGraph
    loss: Tensor
    measure: torch.cuda.CUDAGraph
    measures: list[Tensor]

    def run_step(self) -> Tensor:
        """Gradients of the parameters, and the mean loss."""
        self.step.replay()
        return self.loss

    def run_measures(self) -> list[Tensor]:
        """The measures after the step."""
        self.measure.replay()
        return self.measures


def can_capture(model: nn.Module, source: Any, device: torch.device, settings: dict[str, Any], epochs: int) -> bool:
    """Whether the epochs of a run can be captured."""
    if device.type != "cuda" or settings["amp"] is not None or epochs < _LEAST_EPOCHS:
        return False
    if not isinstance(model, FisherNet) or not isinstance(source, FullBatch):
        return False
    sets = source.task.edge_index
    small = isinstance(sets, TensorSets) and sets.kinds == 1 and sets.indices.shape[0] <= _MOST_ENTRIES
    return small and not is_sparse(source.task.x) and not _has_hooks(model) and _never_waits(model)


def _never_waits(model: FisherNet) -> bool:
    """Whether no module of a network waits for the device."""
    mixtures = [conv.mixture for conv in model.convs]
    posterior = all(type(mixture) is Mixture and mixture.slack == torch.inf for mixture in mixtures)
    return posterior and model.pooling is None


def _has_hooks(model: nn.Module) -> bool:
    """Whether somebody watches the modules from Python."""
    names = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return any(getattr(module, name) for module in model.modules() for name in names)


def capture_epoch(
    model: nn.Module,
    device: torch.device,
    step: Callable[[], Tensor],
    measures: Callable[[], list[Tensor]],
) -> EpochGraphs | None:
    """The graphs of a step, which fills the gradients of the parameters and returns the loss, and of the measures.

    None if they cannot be captured, for want of memory or because something waits for the device: a capture has
    changed nothing then, and random numbers go on as they would have without it.
    """
    generator = _generator(device)
    before = generator.clone_state()  # one whose capture broke off counts no draws any more
    try:
        return _capture(model, device, step, measures)
    except RuntimeError as error:
        generator.graphsafe_set_state(before)
        first = (str(error).splitlines() or [type(error).__name__])[0]
        _log.warning("the epochs run kernel by kernel, because their capture as CUDA graphs failed: %s", first)
        return None


def _generator(device: torch.device) -> Any:
    """The default source of random numbers of a GPU."""
    index = torch.cuda.current_device() if device.index is None else device.index
    return torch.cuda.default_generators[index]


def _capture(
    model: nn.Module, device: torch.device, step: Callable[[], Tensor], measures: Callable[[], list[Tensor]]
) -> EpochGraphs:
    """The graphs of `capture_epoch`."""
    graphs = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    try:
        # A capture that breaks off leaves its own stream as the current one: the outer block sets this one again.
        with torch.cuda.device(device), torch.cuda.stream(torch.cuda.current_stream(device)):
            for parameter in model.parameters():
                parameter.grad = None  # those of the graph are written, not added to
            model.train()
            with torch.cuda.graph(graphs[0]):
                loss = step()
            model.eval()
            with torch.cuda.graph(graphs[1], pool=graphs[0].pool()):
                found = measures()
    except RuntimeError as error:
        if error.__context__ is not None:  # a second error, at the end of the capture
            _broken.append(graphs)
        raise
    return EpochGraphs(graphs[0], loss, graphs[1], found)
