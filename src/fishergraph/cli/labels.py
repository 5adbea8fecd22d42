"""Labels that train and embed --tune read from the node file, and predictions that predict writes."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fishergraph._errors import FishergraphWarning, InputError
from fishergraph.cli.edges import node_text
from fishergraph.cli.jobs import Inputs, LearningJob, node_file, read_inputs
from fishergraph.io.text_options import ANY_TEXT, TextOptions

if TYPE_CHECKING:
    import numpy as np

_PARTS = {"train": "train", "val": "val", "valid": "val", "validation": "val", "test": "test", "": ""}
_MASKS = {"train_mask": "train", "val_mask": "val", "test_mask": "test"}
_MINUS_ONE = ("-1", "-1.0")
_LONGEST = 1000  # characters of a class
_INTEGER = re.compile(r"(0|-?[1-9]\d{0,17})(\.0)?")  # as int64 prints it, or as pandas writes it beside empty cells


@dataclass(frozen=True)
class Labels:
    """The classes of the nodes, as indices into `classes`, and the rows of each part of a split.

    `FisherClassifier` reads −1 as a node without a label; an index makes it a class like any other.
    """

    y: np.ndarray  # (node,), object: the index of the class, or None
    classes: np.ndarray  # integers or texts
    split: str | None = None  # the columns or masks that name the parts
    val: np.ndarray | None = None  # rows; None leaves the choice to the estimator
    test: np.ndarray | None = None  # rows

    @property
    def training(self) -> np.ndarray:
        """The labels that training may see: all but those of test nodes."""
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


def read_labelled(
    job: LearningJob,
    label: str,
    split: str | None,
    *,
    command: str,
    advance: Callable[[int], Any] = lambda n: None,
) -> tuple[Inputs, Labels]:
    """Return the graph, the features, and the labels beside them, which are no features."""
    from fishergraph.io.npz import ARRAYS

    path = node_file(job)
    if path is None:
        raise InputError(f"{command} needs a node file with the column {label!r}, got none; name it with --nodes.")
    columns = [label] if split is None else [label, split]
    labels = read_labels(path, label, split, node_text(job))
    if len(labels.classes) == 1:
        got, advice = f"{labels.classes[0].item()!r} alone", "name another column, or label nodes of another class"
        raise InputError(f"column {label!r} of '{path}' must hold at least two classes, got {got}; {advice}.")
    drop = [*(job.drop or []), *columns] if path.suffix.lower() not in ARRAYS else job.drop
    inputs = read_inputs(job, drop=drop, advance=advance)
    if split is None:
        _check_no_split(inputs.X, path)
    return inputs, labels


def _check_no_split(X: Any, path: Path) -> None:
    """Raise if a column of a table reads as a split that was not named: it would be a feature."""
    for name in getattr(X, "column_names", ()):
        if str(X.schema.field(name).type) in ("string", "large_string"):
            words = {_word(cell) or "" for cell in X.column(name).unique().to_pylist()}
            if "train" in words and words <= set(_PARTS):
                raise InputError(
                    f"column {name!r} of '{path}' reads as a split, which would be a feature; name it with --split "
                    f"{name}, or leave it out with --drop {name}."
                )


def read_labels(path: Path, label: str, split: str | None, text: TextOptions = ANY_TEXT) -> Labels:
    """Return the labels of a node file; with a split, a column or the masks of an npz, rows outside it have none."""
    from fishergraph.io.npz import npz_keys
    from fishergraph.io.tables import read_columns

    keys = [] if split is None else [split]
    if split is None and path.suffix.lower() == ".npz":
        masks = npz_keys(path)
        keys = [name for name in _MASKS if name in masks and "train_mask" in masks]
    cells, *parts = read_columns(path, [label, *keys], text)
    if any(isinstance(cell, (list, dict)) for cell in cells):
        raise InputError(f"{label!r} in '{path}' must hold one class per row, got several; name another column.")
    words = _unlabelled([_word(cell) for cell in cells], label, path)
    if keys:
        source = f"column {split!r} of '{path}'" if split else f"the masks of '{path}'"
        part_of = _parts_of_masks(keys, parts, len(words), path) if split is None else _parts_of_cells(parts[0], source)
        words = [word if part else None for word, part in zip(words, part_of, strict=True)]
        if not any(word is not None and part == "train" for word, part in zip(words, part_of, strict=True)):
            raise InputError(f"{source} must say 'train' for some labelled rows, got none; mark them.")
    y, classes = _encoded(words, f"column {label!r} of '{path}'")
    if not keys:
        return Labels(y, classes)
    rows = _rows(y, part_of, classes, source)
    val = None if split is None and "val_mask" not in keys else rows["val"]
    return Labels(y, classes, ", ".join(keys), val, rows["test"])


def _word(cell: Any) -> str | None:
    """A cell as text, None if it is empty."""
    return None if cell is None or cell != cell else str(cell).strip() or None


def _unlabelled(words: list[str | None], label: str, path: Path) -> list[str | None]:
    """The words, without −1 in an npz file, which marks rows without a label there; in tables it is a class.

    A warning tells which of the two it is, unless −1 and 1 are the only classes.
    """
    rows = sum(word in _MINUS_ONE for word in words)
    if not rows or {word for word in words if word is not None} <= {*_MINUS_ONE, "1", "1.0"}:
        return words
    array = path.suffix.lower() == ".npz"
    what = "have no label then; write another number if it is a class" if array else "are a class of their own"
    advice = "" if array else "; leave these cells empty if the nodes have no label"
    text = f"{label!r} in '{path}' is -1 in {rows} rows, which {what}{advice}."
    warnings.warn(FishergraphWarning(text, kind="labels of -1"), stacklevel=2)
    return [None if word in _MINUS_ONE else word for word in words] if array else words


def _encoded(words: list[str | None], what: str) -> tuple[np.ndarray, np.ndarray]:
    """The index of every row's class, and the sorted classes: integers if all of them are, else texts."""
    import numpy as np

    distinct = {word for word in words if word is not None}
    if not distinct:
        raise InputError(f"{what} must hold the class of at least one row, got none; label the rows to train on.")
    if odd := [word for word in distinct if "\0" in word or len(word) > _LONGEST]:
        raise InputError(
            f"{what} must hold classes of at most {_LONGEST} characters without NUL, got {odd[0][:40]!r}; shorten them."
        )
    integers = all(_INTEGER.fullmatch(word) for word in distinct)
    if not integers and all(map(_is_number, distinct)) and (broken := [word for word in distinct if float(word) % 1]):
        raise InputError(f"{what} must hold classes, got numbers such as {min(broken)}; bin them into classes.")
    value = {word: int(word.removesuffix(".0")) if integers else word for word in distinct}
    classes = np.unique(list(value.values()))
    index = {one: k for k, one in enumerate(classes.tolist())}
    y = np.full(len(words), None)
    y[:] = [None if word is None else index[value[word]] for word in words]
    return y, classes


def _is_number(word: str) -> bool:
    try:
        return float(word) == float(word)
    except ValueError:
        return False


def _rows(y: np.ndarray, part_of: np.ndarray, classes: np.ndarray, source: str) -> dict[str, np.ndarray]:
    """The labelled rows of each part; every class has some in train."""
    import numpy as np

    rows = {part: np.flatnonzero((part_of == part) & (y != None)) for part in ("train", "val", "test")}  # noqa: E711
    trained = set(y[rows["train"]])
    for part in ("val", "test"):
        untrained = [k for k in y[rows[part]] if k not in trained]
        if untrained:
            raise InputError(
                f"class {classes[untrained[0]].item()!r} must have a training node, got it in {part} and not in train "
                f"({source}); move some of its rows to train, or empty their labels."
            )
    return rows


def _parts_of_cells(cells: list[Any], source: str) -> np.ndarray:
    """The part of every row, from the cells of a column."""
    import numpy as np

    words = ["" if cell is None else str(cell).strip().lower() for cell in cells]
    wrong = next((row for row, word in enumerate(words) if word not in _PARTS), None)
    if wrong is not None:
        got = f"{cells[wrong]!r} in row {wrong}"
        raise InputError(f"{source} must say train, val, test or nothing, got {got}; repair it.")
    return np.array([_PARTS[word] for word in words])


def _parts_of_masks(names: list[str], masks: list[Any], n_rows: int, path: Path) -> np.ndarray:
    """The part of every row, from the masks of an npz; of several splits, the first."""
    import numpy as np

    parts = np.full(n_rows, "", dtype="<U5")
    for name, values in zip(names, masks, strict=True):
        mask = np.asarray(values)
        mask = mask[0] if mask.ndim == 2 else mask
        if mask.dtype.kind not in "biu" or mask.shape != (n_rows,) or not np.isin(mask, (0, 1)).all():
            raise InputError(
                f"{name} in '{path}' must be true or false for each of {n_rows} rows, got {mask.dtype} of shape "
                f"{mask.shape}; repair it."
            )
        parts[mask.astype(bool)] = _MASKS[name]
    return parts


def write_predictions(path: Path, ids: np.ndarray, predicted: np.ndarray, classes: np.ndarray, proba: Any) -> None:
    """Write a row per node: id, prediction and, if they are passed, the probabilities p_CLASS."""
    import numpy as np

    from fishergraph.io.arrow import write_table
    from fishergraph.io.files import check_suffix, replacing
    from fishergraph.io.npz import SUFFIXES

    suffix = check_suffix(path, SUFFIXES)
    ids, predicted, classes = (a.astype(str) if a.dtype == object else a for a in (ids, predicted, classes))
    with replacing(path) as part, part.open("wb") as file:
        if suffix == ".npz":
            extra = {} if proba is None else {"classes": classes, "proba": proba}
            np.savez(file, ids=ids, prediction=predicted, **extra)
            return
        columns = {"id": ids.__getitem__, "prediction": predicted.__getitem__}
        names = [] if proba is None else [f"p_{label}" for label in classes]
        write_table(file, suffix, columns, len(ids), proba, names)
