"""Two stores, or two runs, compared by what their manifests say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fishergraph.estimators.state import RUN
from fishergraph.io.array_file import read_file
from fishergraph.scale.arrays import FileArray, checksum
from fishergraph.scale.finished import FinishedRun, finished_runs
from fishergraph.scale.report import Check
from fishergraph.scale.store import Store

_GROUPS = {
    "graph": ("indptr", "indices", "weights"),
    "features": ("features", "features_data", "features_indices", "features_indptr"),
    "ids": ("ids", "ids_text", "ids_offsets", "removed"),
}
# What an entry of run.json is called.
_SETTINGS = {
    "words": "the seed",
    "model": "the model of transform",
    "weights": "block weights",
    "cpu": "the processor",
    "fishergraph": "the version",
}


def compare_stores(first: Store, second: Store) -> Iterator[Check]:
    """The graph, the features, the ids and the runs of two stores."""
    for group, names in _GROUPS.items():
        arrays = [
            {name: entry for name, entry in store.manifest["arrays"].items() if name in names}
            for store in (first, second)
        ]
        if arrays[0] or arrays[1]:
            yield _compare_arrays(group, *arrays)
    runs = [{run.name: run for run in finished_runs(store.path)} for store in (first, second)]
    for name in sorted({**runs[0], **runs[1]}):
        if name not in runs[0] or name not in runs[1]:
            where = first.path if name in runs[0] else second.path
            yield Check(f"embeddings/{name}", False, f"it is in '{where}' alone")
            continue
        yield from compare_runs(runs[0][name], runs[1][name])


def _compare_arrays(group: str, first: Mapping[str, Any], second: Mapping[str, Any]) -> Check:
    for name in {**first, **second}:
        if name not in first or name not in second:
            return Check(group, False, f"{name}.npy is in one of them alone")
        for what in ("shape", "dtype"):
            if first[name][what] != second[name][what]:
                return Check(group, False, f"{name}.npy has {what} {first[name][what]} and {second[name][what]}")
        if first[name]["checksums"] != second[name]["checksums"]:
            chunks = zip(first[name]["checksums"], second[name]["checksums"], strict=True)
            count = sum(a != b for a, b in chunks)
            total = len(first[name]["checksums"])
            return Check(group, False, f"{count} of {total} checksums of {name}.npy")
    return Check(group, True, f"checksums of {', '.join(first)}")


def compare_runs(first: FinishedRun, second: FinishedRun) -> Iterator[Check]:
    """The settings, the model and the stages of two runs."""
    label = f"embeddings/{first.name}"
    if first.name != second.name:
        label += f" and {second.name}"
    yield _compare_settings(f"{label} parameters", first.folder.identity, second.folder.identity)
    same = _same_model(first.folder.learned, second.folder.learned)
    yield Check(f"{label} model", same, "the arrays of learned.safetensors")
    for stage in {**first.arrays, **second.arrays}:
        yield _compare_stage(f"{label} {stage}", stage, first, second)


def _compare_settings(label: str, first: Mapping[str, Any], second: Mapping[str, Any]) -> Check:
    before, after = first["parameters"], second["parameters"]
    changed = [
        f"{name} is {before.get(name)!r} and {after.get(name)!r}"
        for name in {**before, **after}
        if before.get(name) != after.get(name)
    ]
    changed += [f"{words} differs" for key, words in _SETTINGS.items() if first.get(key) != second.get(key)]
    return Check(label, not changed, ", ".join(changed) or "parameters, seed, version and processor")


def _compare_stage(label: str, stage: str, first: FinishedRun, second: FinishedRun) -> Check:
    before, after = first.arrays.get(stage), second.arrays.get(stage)
    if before is None or after is None:
        return Check(label, False, "it is in one run alone")
    for what in ("shape", "dtype"):
        if before[what] != after[what]:
            return Check(label, False, f"{what} {before[what]} and {after[what]}")
    if before["borders"] == after["borders"]:
        pairs = zip(first.parts(stage), before["checksums"], after["checksums"], strict=True)
        different = [rows for rows, a, b in pairs if a != b]
        how = "checksums"
    else:  # parts of other rows have other checksums
        arrays = [FileArray(run.folder.path / f"{stage}.npy") for run in (first, second)]
        different = [rows for rows in first.parts(stage) if checksum(arrays[0][rows]) != checksum(arrays[1][rows])]
        how = "bytes"
    if not different:
        return Check(label, True, f"{how} of {before['shape'][0]:,} rows")
    rows = ", ".join(f"{part.start:,} to {part.stop - 1:,}" for part in different[:3])
    return Check(label, False, f"rows {rows}" + (", …" if len(different) > 3 else ""))


def _same_model(first: Path, second: Path) -> bool:
    """Whether two runs learned the same; the order of the entries of a file means nothing."""
    (header, arrays), (other_header, others) = read_file(first, RUN), read_file(second, RUN)
    same = header == other_header and arrays.keys() == others.keys()
    return same and all(checksum(np.asarray(arrays[name])) == checksum(np.asarray(others[name])) for name in arrays)
