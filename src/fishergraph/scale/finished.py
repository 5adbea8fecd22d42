"""A run that has ended, read back from its folder: what it computed, on what, and whether its files are whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from fishergraph._errors import FileFormatError
from fishergraph.estimators.model_file import given_params
from fishergraph.estimators.node import FisherEmbedding
from fishergraph.estimators.source import NodeJob
from fishergraph.estimators.state import read_learned
from fishergraph.multiset import Rule, choose_multiset
from fishergraph.scale.arrays import FileArray, checksum
from fishergraph.scale.folders import read_json
from fishergraph.scale.run_folder import RunFolder
from fishergraph.structural import choose_structure

Advance = Callable[[int], Any]


@dataclass(frozen=True)
class FinishedRun:
    """A run whose stages are all on disk.

    folder : its files.
    manifest : the arrays of its stages.
    """

    folder: RunFolder
    manifest: dict[str, Any]

    @classmethod
    def open(cls, path: Path) -> FinishedRun:
        """The run in a folder; raises if it has not ended."""
        if not (path / "manifest.json").is_file():
            reason = "the run has not ended, or it is not the folder of a run"
            raise FileFormatError(path=path, reason=reason, advice="run the same command again to go on")
        return cls(RunFolder(path), read_json(path / "manifest.json"))

    @property
    def name(self) -> str:
        """The name of the run."""
        return self.folder.path.name

    @property
    def arrays(self) -> dict[str, Any]:
        """Name of a stage → shape, dtype, weight, borders of its parts, and their checksums."""
        return self.manifest["arrays"]

    def parts(self, name: str) -> list[slice]:
        """The rows of every part of a stage."""
        return [slice(first, last) for first, last in pairwise(self.arrays[name]["borders"])]

    def damage(self, name: str, advance: Advance = lambda n: None) -> list[str]:
        """What differs between the values of a stage and their checksums, in words."""
        entry, file = self.arrays[name], f"embeddings/{self.name}/{name}.npy"
        path = self.folder.path / f"{name}.npy"
        if not path.is_file():
            return [f"{file}, which is missing"]
        array = FileArray(path)
        if list(array.shape) != entry["shape"] or str(array.dtype) != entry["dtype"]:
            return [f"{file}, its shape or its type"]
        damaged = []
        for rows, expected in zip(self.parts(name), entry["checksums"], strict=True):
            values = array[rows]
            advance(values.nbytes)
            if checksum(values) != expected:
                damaged.append(f"{file}, rows {rows.start:,} to {rows.stop - 1:,}")
        return damaged

    def job(self, *, features: bool) -> NodeJob:
        """The work of the run with all that it learned, as `transform` would give it to a store."""
        identity = self.folder.identity
        estimator = FisherEmbedding(**given_params(identity["parameters"]))
        settings = replace(estimator.settings(features=features), block_weights=tuple(identity["weights"]))
        asked = choose_structure(estimator.structure) if settings.structure or not features else None
        stack, structure = read_learned(self.folder.learned, settings, asked)
        if stack.input_map is None or len(stack.layers) < stack.n_layers:
            raise FileFormatError(path=self.folder.learned, reason="parts of the model are missing", advice="run again")
        rule: Rule = choose_multiset(estimator.multiset)
        return NodeJob(stack, rule, asked, structure, identity["parameters"])


def finished_runs(store: Path) -> list[FinishedRun]:
    """The runs of a store that have ended, in the order of their names."""
    return [FinishedRun.open(path) for path in _begun(store) if (path / "manifest.json").is_file()]


def unfinished_runs(store: Path) -> list[str]:
    """The names of the runs that have not ended."""
    return [path.name for path in _begun(store) if not (path / "manifest.json").is_file()]


def _begun(store: Path) -> list[Path]:
    """The folders of the runs of a store; those with hidden names are being made."""
    paths = sorted(path.parent for path in store.glob("embeddings/*/run.json"))
    return [path for path in paths if not path.name.startswith(".")]
