"""Jobs: what one process does at a time, a fit and its scores.

A method is given `Known` and nothing else: features, graph, and the labels of training and validation nodes. The labels
of all other nodes are −1 in it, in a search and in a final run alike, and it does not say which nodes are the test
nodes. `run_job` looks at the test labels for the cells of the final stage, after the method has answered.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from fishergraph.baselines import baseline
from fishergraph.datasets import GraphData, load_graph
from fishergraph.experiments.memory import peak_memory, reset_peak
from fishergraph.experiments.plan import FINAL, Column
from fishergraph.experiments.rows import Cell, new_row
from fishergraph.experiments.stamp import versions
from fishergraph.probes import LogisticProbe

UNKNOWN = -1


@dataclass(frozen=True)
class Known:
    """What a method is given."""

    X: Any
    graph: Any
    y: np.ndarray  # −1 but for the training and validation nodes
    train: np.ndarray
    val: np.ndarray


def known_part(data: GraphData) -> Known:
    """The graph without its test labels."""
    train, val, _ = data.split()
    y = np.full_like(data.y, UNKNOWN)
    for nodes in (train, val):
        y[nodes] = data.y[nodes]
    return Known(data.X, data.graph, y, train, val)


@dataclass(frozen=True)
class Answer:
    """What a method says: a class for each node, its validation accuracy, and what else is worth a note."""

    classes: np.ndarray
    val: float
    notes: dict[str, Any]


@dataclass(frozen=True)
class Job:
    """Cells that share a fit, of one column."""

    column: Column
    cells: tuple[Cell, ...]
    data_home: Path | None = None
    device: str = "cpu"


def share_fits(column: Column, cells: list[Cell]) -> list[tuple[Cell, ...]]:
    """The cells in groups, each of one fit: cells that differ in the nested setting alone."""
    nested, groups = _nested(column), {}
    for cell in cells:
        settings = {name: value for name, value in cell.parameters["settings"].items() if name != nested}
        key = Cell(cell.parameters["stage"], settings, cell.seed).key if nested else cell.key
        groups.setdefault(key, []).append(cell)
    return [tuple(group) for group in groups.values()]


def _nested(column: Column) -> str | None:
    """The nested setting, where cells of it can share a fit: their probe must be the linear one."""
    return column.spec.nested if column.protocol.settings.get("probe", "logistic") == "logistic" else None


def run_job(job: Job) -> list[dict[str, Any]]:
    """The rows of a job's cells, in their order."""
    data = load(job.column.dataset, job.data_home)
    reset_peak()
    start, busy = perf_counter(), process_time()
    fit = fit_nested if _nested(job.column) else fit_each
    answers = fit(job, known_part(data))
    seconds, cpu = (now / len(answers) for now in (perf_counter() - start, process_time() - busy))
    stamp = {"cpu_seconds": round(cpu, 4), "peak_mb": peak_memory(), "device": job.device, "versions": versions()}
    rows = []
    for cell, answer in zip(job.cells, answers, strict=True):
        values = {"val": answer.val, **answer.notes}
        if cell.parameters["stage"] == FINAL:
            test = data.split()[2]
            values["test"] = float(np.mean(answer.classes[test] == data.y[test]))
        rows.append(new_row(cell, values, seconds) | stamp)
    return rows


@lru_cache(maxsize=1)
def load(name: str, data_home: Path | None) -> GraphData:
    """The graph, kept for the next job of this process."""
    return load_graph(name, data_home=data_home)


def fit_each(job: Job, known: Known) -> list[Answer]:
    """A fit per cell."""
    return [_answer(job, cell, known) for cell in job.cells]


def _answer(job: Job, cell: Cell, known: Known) -> Answer:
    settings = dict(cell.parameters["settings"])
    model = baseline(cell.parameters["method"], **settings)
    _place(model, job.device)
    model.fit(known.X, known.y, graph=known.graph, train=known.train, val=known.val, seed=cell.seed or 0)
    notes = {"C": getattr(getattr(model, "probe_", None), "C_", None)}
    history = getattr(model, "history_", None)
    notes |= {"best_epoch": history.best_epoch, "epochs": len(history)} if history else {}
    return Answer(model.predict(), model.val_score_, {name: note for name, note in notes.items() if note is not None})


def _place(model: Any, device: str) -> None:
    """Send the work of a model to a device: one thread there is the host's."""
    if hasattr(model, "device"):
        model.device = device
    elif "options" in model.get_params():
        model.options = {"n_jobs": 1, "device": device, **(model.options or {})}


def fit_nested(job: Job, known: Known) -> list[Answer]:
    """One embedding of the deepest cell; the blocks ψ_0 … ψ_t in it are the embedding of t layers, each probed alone.

    The layers of a stack are learned one after the other, each with a random stream of its own.
    """
    depths = [cell.parameters["settings"]["n_layers"] for cell in job.cells]
    deepest = job.cells[int(np.argmax(depths))]
    model: Any = baseline(deepest.parameters["method"], **deepest.parameters["settings"])
    stack = model.embedding(deepest.seed, n_jobs=1, device=job.device)
    Z = stack.fit_transform(known.X, graph=known.graph)
    ends = np.cumsum(stack.stack_.widths)
    answers = []
    for depth in depths:
        part = np.ascontiguousarray(Z[:, : ends[depth]])
        probe = LogisticProbe(**(model.probe_options or {})).fit(part, known.y, known.train, known.val)
        answers.append(Answer(probe.predict(part), probe.val_score_, {"C": probe.C_}))
    return answers
