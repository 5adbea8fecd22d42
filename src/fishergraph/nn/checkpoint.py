"""A training run between two epochs: everything that decides its future, in memory and as a safetensors file."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fishergraph._errors import InputError
from fishergraph._validation import check_number
from fishergraph._version import __version__
from fishergraph.io.array_file import Kind, foreign, only, read_file, write_file
from fishergraph.multiset import LiftedSets
from fishergraph.nn.history import History, read_history
from fishergraph.ops.tensor_sets import TensorSets

CHECKPOINT = Kind("fishergraph-checkpoint", "a checkpoint", "train")


@dataclass
class Run:
    """What changes in training: the weights, the optimiser, the schedule, the history, and the best weights.

    scheduler : None, or a schedule of torch.
    settings : JSON; a run can only be resumed with the same.
    """

    model: nn.Module
    optimizer: torch.optim.Optimizer
    scheduler: Any
    scaler: torch.amp.GradScaler
    device: torch.device
    settings: dict[str, Any]
    history: History = field(default_factory=History)
    best: dict[str, Tensor] = field(default_factory=dict)

    @property
    def lr(self) -> float:
        return self.optimizer.param_groups[0]["lr"]

    def weights(self) -> dict[str, Tensor]:
        """A copy of the weights and buffers."""
        return {name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()}


@dataclass(frozen=True)
class Snapshot:
    """A run after an epoch: its tensors by name, and everything else as JSON."""

    tensors: dict[str, Tensor]
    facts: dict[str, Any]

    def part(self, prefix: str) -> dict[str, Tensor]:
        """The tensors whose names begin with the prefix, by the rest of their names."""
        return {name.removeprefix(prefix): tensor for name, tensor in self.tensors.items() if name.startswith(prefix)}


def take_snapshot(run: Run) -> Snapshot:
    """A copy of the state of a run."""
    tensors = {f"model.{name}": tensor for name, tensor in run.weights().items()}
    tensors |= {f"best.{name}": tensor for name, tensor in run.best.items()}  # never written to
    for number, state in run.optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{key}": value.clone() for key, value in state.items()}
    tensors["random.cpu"] = torch.get_rng_state()
    if run.device.type == "cuda":
        tensors["random.cuda"] = torch.cuda.get_rng_state(run.device)
    facts = {
        "history": {"rows": list(run.history.rows), "best_epoch": run.history.best_epoch},
        "rates": [{key: group[key] for key in ("lr", "initial_lr") if key in group} for group in _groups(run)],
        "scheduler": None if run.scheduler is None else _plain(run.scheduler.state_dict()),
        "scaler": run.scaler.state_dict(),
        "settings": run.settings,
    }
    return Snapshot(tensors, facts)


def _groups(run: Run) -> list[dict[str, Any]]:
    return run.optimizer.param_groups


def _plain(state: dict[str, Any]) -> dict[str, Any]:
    """The values in the state of a schedule."""
    return {key: value for key, value in state.items() if isinstance(value, (int, float, str, list, type(None)))}


def restore(run: Run, snapshot: Snapshot) -> None:
    """Bring a run back to the state of a snapshot."""
    facts, tensors = snapshot.facts, snapshot.tensors
    run.model.load_state_dict(snapshot.part("model."))
    run.best = snapshot.part("best.")
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in snapshot.part("optimizer.").items():
        number, _, key = name.partition(".")
        state.setdefault(int(number), {})[key] = tensor.clone()
    groups = run.optimizer.state_dict()["param_groups"]
    for group, rates in zip(groups, facts["rates"], strict=True):
        group.update(rates)
    run.optimizer.load_state_dict({"state": state, "param_groups": groups})
    if run.scheduler is not None:
        run.scheduler.load_state_dict(facts["scheduler"])
    run.scaler.load_state_dict(facts["scaler"])
    run.history = History(list(facts["history"]["rows"]), facts["history"]["best_epoch"])
    torch.set_rng_state(tensors["random.cpu"].cpu())
    if run.device.type == "cuda" and "random.cuda" in tensors:
        torch.cuda.set_rng_state(tensors["random.cuda"].cpu(), run.device)


def write_snapshot(path: Path, snapshot: Snapshot) -> None:
    """Write a snapshot; the file appears complete or not at all."""
    # NumPy has no bfloat16: such tensors are written as float32, with a list of their names.
    short = [name for name, tensor in snapshot.tensors.items() if tensor.dtype == torch.bfloat16]
    wide = snapshot.tensors | {name: snapshot.tensors[name].float() for name in short}
    arrays = {name: tensor.cpu().contiguous().numpy() for name, tensor in wide.items()}
    write_file(path, {"fishergraph": __version__, "bfloat16": short, **snapshot.facts}, arrays, CHECKPOINT)


def describe_model(model: nn.Module) -> dict[str, str]:
    """What must be the same when a run is resumed: the class, the dtype, and the arguments of the model."""
    config = model.config() if hasattr(model, "config") else {}  # type: ignore[operator]
    arguments = {f"model.{name}": re.sub(" at 0x[0-9a-f]+", "", repr(value)) for name, value in config.items()}
    return {"model": type(model).__name__, "dtype": str(next(model.parameters()).dtype), **arguments}


def checksum(*values: Any) -> int:
    """A number that changes with the features, labels, edges or nodes."""
    total = 0
    for value in values:
        for tensor in _parts(value):
            host = tensor.detach().cpu().contiguous().ravel()
            total = zlib.crc32(f"{tensor.dtype} {tuple(tensor.shape)}".encode(), total)
            total = zlib.crc32(host.view(torch.uint8).numpy().data if host.numel() else b"", total)
    return total


def _parts(value: Any) -> Iterator[Tensor]:
    """The dense tensors of a value."""
    if isinstance(value, LiftedSets):
        yield from (*_parts(value.sets), torch.as_tensor(value.subgraphs))
    elif isinstance(value, TensorSets):
        yield from (part for part in (value.indptr, value.indices, value.weights) if part is not None)
    elif isinstance(value, Tensor) and value.layout == torch.strided:
        yield getattr(value, "as_tensor", lambda: value)()
    elif isinstance(value, Tensor):
        rows = value if value.layout == torch.sparse_csr else value.to_sparse_csr()
        yield from (rows.crow_indices(), rows.col_indices(), rows.values())


def read_snapshot(path: Path, run: Run) -> Snapshot:
    """The snapshot of a file, which must belong to such a run."""
    facts, arrays = read_file(path, CHECKPOINT)
    try:
        tensors = {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}
        tensors |= {name: tensors[name].bfloat16() for name in facts.get("bfloat16", ())}
    except (KeyError, TypeError) as error:
        raise foreign(path, f"one with parts missing or unknown ({error})", CHECKPOINT) from None
    snapshot = Snapshot(tensors, facts)
    expected = {name: tuple(tensor.shape) for name, tensor in run.model.state_dict().items()}
    stored = {name: tuple(tensor.shape) for name, tensor in snapshot.part("model.").items()}
    if not isinstance(facts.get("settings"), dict) or "random.cpu" not in tensors:
        raise foreign(path, "one with parts missing", CHECKPOINT)
    if expected != stored:
        name = next(name for name in {**expected, **stored} if expected.get(name) != stored.get(name))
        raise InputError(
            f"'{path}' must hold the weights of this model, got {stored.get(name, 'none')} for {name}, which has "
            f"{expected.get(name, 'none')} here; build the model as it was, or set resume=False."
        )
    for key, value in run.settings.items():
        if facts["settings"].get(key, value) != value:
            raise InputError(
                f"'{path}' must come from a run with {key}={value!r}, got {facts['settings'].get(key)!r}; "
                "pass the settings of that run, or set resume=False."
            )
    try:
        check_snapshot(run, snapshot)
    except (AttributeError, KeyError, OverflowError, RuntimeError, TypeError, ValueError) as error:
        raise foreign(path, f"one with parts missing or unknown ({error})", CHECKPOINT) from None
    return snapshot


# The entries of a schedule that change from epoch to epoch.
_MOVING = {"last_epoch", "best", "num_bad_epochs", "cooldown_counter"}


def check_snapshot(run: Run, snapshot: Snapshot) -> None:
    """Raise unless every tensor and number could belong to this run."""
    facts = only(snapshot.facts, ("fishergraph", "bfloat16", "history", "rates", "scheduler", "scaler", "settings"))
    _check_tensors(run, snapshot)
    history = only(facts["history"], ("rows", "best_epoch"))
    read_history({**history, "stopped_early": False, "interrupted": False})
    if len(facts["rates"]) != len(_groups(run)):
        raise ValueError(f"{len(facts['rates'])} learning rates")
    for rates in facts["rates"]:
        for name, rate in only(rates, ("lr", "initial_lr")).items():
            check_number(rate, name)
    scheduler = None if run.scheduler is None else _plain(run.scheduler.state_dict())
    _check_like(facts["scheduler"], scheduler, "scheduler")
    _check_like(facts["scaler"], run.scaler.state_dict(), "scaler")


def _check_tensors(run: Run, snapshot: Snapshot) -> None:
    """Check the weights, the best ones if there are any, the moments of the optimiser, and the random state."""
    weights = run.model.state_dict()
    for prefix in ("model.", "best."):
        for name, tensor in snapshot.part(prefix).items():
            if (tensor.shape, tensor.dtype) != (weights[name].shape, weights[name].dtype):
                raise ValueError(f"{prefix}{name} is {tensor.dtype} of {tuple(tensor.shape)}")
            check_sign(name, tensor)
    if len(snapshot.part("best.")) not in (0, len(weights)):
        raise ValueError("some of the best weights")
    _check_moments(run, snapshot.part("optimizer."))
    torch.Generator().set_state(snapshot.tensors["random.cpu"])
    parts = ("model.", "best.", "optimizer.")
    strange = [name for name in snapshot.tensors if not name.startswith(parts) and name not in _RANDOM]
    if strange:
        raise KeyError(strange[0])


def check_sign(name: str, weight: Tensor) -> None:
    """Raise if a variance or a mean number of counts is not positive, or a number of a batch norm is negative."""
    positive = bool((weight > 0).all()) if name.endswith("_extra_state") else True
    counted = name.endswith(("num_batches_tracked", "running_var"))
    if not positive or (counted and bool((weight < 0).any())):
        raise ValueError(f"{name} must be {'not negative' if counted else 'positive'}")


_RANDOM = ("random.cpu", "random.cuda")


def _check_moments(run: Run, moments: dict[str, Tensor]) -> None:
    """Check what Adam keeps for a weight: its steps and two moments of the shape of the weight, or nothing."""
    weights = {str(k): weight for k, weight in enumerate(w for group in _groups(run) for w in group["params"])}
    for number in {name.partition(".")[0] for name in moments}:
        for key in ("step", "exp_avg", "exp_avg_sq"):
            tensor, shape = moments.pop(f"{number}.{key}"), () if key == "step" else weights[number].shape
            if tensor.shape != shape or not tensor.is_floating_point():
                raise ValueError(f"optimizer.{number}.{key} is {tensor.dtype} of {tuple(tensor.shape)}")
            if key != "exp_avg" and bool((tensor < (key == "step")).any()):
                raise ValueError(f"optimizer.{number}.{key} is too small")
    if moments:
        raise KeyError(next(iter(moments)))


def _check_like(stored: Any, current: dict[str, Any] | None, what: str) -> None:
    """Raise unless a state has the entries of this run in their types, and the constant ones unchanged."""
    if current is None or stored is None:
        if stored is not current:
            raise ValueError(f"a {what} of another run")
        return
    if set(only(stored, current)) != set(current):
        raise KeyError(min(set(current) - set(stored)))
    for name, value in current.items():
        other = stored[name]
        fixed = what == "scheduler" and name not in _MOVING and not name.startswith("_")
        if fixed and other != value:
            raise ValueError(f"{name}={other!r} in the {what}")
        if isinstance(value, list):
            for number in other:
                check_number(number, name, least=-math.inf)
        elif isinstance(value, (int, float)) and not isinstance(value, bool) and other != -math.inf:
            check_number(other, name, least=-math.inf)
            if isinstance(value, int) and other != int(other):
                raise ValueError(f"{name}={other!r} in the {what}")
