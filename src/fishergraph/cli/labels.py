"""The labels that train reads from the node file, and the predictions that predict writes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

_PARTS = {"train": "train", "val": "val", "valid": "val", "validation": "val", "test": "test", "": ""}


@dataclass(frozen=True)
class Labels:
    """The classes of the nodes, None where there is none, and where the file splits them, the rows of each part."""

    y: np.ndarray  # (node,), object
    val: np.ndarray | None  # row numbers; None leaves the choice to the estimator
    test: np.ndarray | None  # row numbers

    @property
    def known(self) -> np.ndarray:
        """The labels that training may see: those of no test node."""
        y = self.y.copy()
        if self.test is not None:
            y[self.test] = None
        return y

    @property
    def tested(self) -> np.ndarray:
        """The labels of the test nodes alone."""
        import numpy as np

        y = np.full(len(self.y), None)
        if self.test is not None:
            y[self.test] = self.y[self.test]
        return y


def read_labels(path: Path, label: str, split: str | None) -> Labels:
    """The labels of a node file; with a split, rows of no part have none."""
    import numpy as np

    from fishergraph.tables import read_columns

    values, *parts = read_columns(path, [label] if split is None else [label, split])
    y = np.empty(len(values), dtype=object)
    y[:] = [_label(value) for value in values]
    if split is None:
        return Labels(y, None, None)
    named = np.array([_part(value, row, split, path) for row, value in enumerate(parts[0])])
    y[named == ""] = None
    rows = {part: np.flatnonzero((named == part) & (y != None)) for part in ("train", "val", "test")}  # noqa: E711
    if not len(rows["train"]):
        raise ValueError(f"column {split!r} of '{path}' must say 'train' for some labelled rows, got none; mark them.")
    for part in ("val", "test"):
        strange = [value for value in y[rows[part]] if value not in set(y[rows["train"]])]
        if strange:
            raise ValueError(
                f"class {strange[0]!r} must have a training node, got it in {part} and not in train (column {split!r} "
                f"of '{path}'); move some of its rows to train, or empty their labels."
            )
    return Labels(y, rows["val"], rows["test"])


def _label(value: Any) -> Any:
    """A cell: empty ones have no label, true and false are names, and 3.0 is 3."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return None if value != value else int(value) if value.is_integer() else value
    return value


def _part(value: Any, row: int, split: str, path: Path) -> str:
    word = "" if value is None else str(value).strip().lower()
    if word not in _PARTS:
        raise ValueError(
            f"column {split!r} of '{path}' must say train, val, test or nothing, got {value!r} in row {row}; repair it."
        )
    return _PARTS[word]


def write_predictions(path: Path, ids: np.ndarray, predicted: np.ndarray, classes: np.ndarray, proba: Any) -> None:
    """Write a row per node: id, prediction and, where they are given, the probabilities p_CLASS."""
    import numpy as np
    import pyarrow as pa

    from fishergraph._file_checks import check_suffix, replacing
    from fishergraph.tables import SUFFIXES

    suffix = check_suffix(path, SUFFIXES)
    chances = {} if proba is None else {f"p_{label}": proba[:, k] for k, label in enumerate(classes)}
    with replacing(path) as part, part.open("wb") as file:
        if suffix == ".npz":
            extra = {} if proba is None else {"classes": _plain(classes), "proba": proba}
            np.savez(file, ids=_plain(ids), prediction=_plain(predicted), **extra)
            return
        columns = {"id": _plain(ids), "prediction": _plain(predicted), **chances}
        _write_table(file, suffix, pa.table({name: pa.array(column) for name, column in columns.items()}))


def _plain(values: np.ndarray) -> np.ndarray:
    """Objects as strings."""
    return values.astype(str) if values.dtype == object else values


def _write_table(file: Any, suffix: str, table: Any) -> None:
    import pyarrow as pa
    import pyarrow.csv as pacsv
    import pyarrow.parquet as pq

    from fishergraph.tables import SUFFIXES

    with pa.output_stream(file, compression="gzip" if suffix.endswith(".gz") else None) as sink:
        if suffix == ".parquet":
            pq.write_table(table, sink)
        else:
            pacsv.write_csv(table, sink, pacsv.WriteOptions(delimiter=SUFFIXES[suffix]))
