"""The blocks of an embedding, found in its numbers alone: a plain array has no column names.

Two properties of the blocks of `FisherEmbedding` tell where they end.

- The rows of "smooth" and "factors" have one length, up to rounding, and in no shorter run of columns they do.
- A kernel map gives all its columns about one mean, since no landmark comes first. Between two maps the means step. The
  step is where the likelihood of two means is largest, and it is certain if no other column is nearly as likely.

A step that is not certain is no cut, unless a likely column gives a block the width of another one, and the columns
between certain borders are a multiple of it.
"""

from __future__ import annotations

from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph._parallel import one_blas_thread

_MOST_ROWS, _FEWEST_ROWS, _MOST_COLUMNS = 512, 32, 4096  # that are looked at
_SHORTEST, _NARROWEST = 3, 4  # columns in which rows have one length, columns of a kernel map
_MOST, _MOST_TRIED = 16, 64  # blocks; borders that are looked at
_ROUNDING = 1e-5  # of squared lengths of rows in float32
_CONTRASTS = 4
_STEP, _SHARE = 10.0, 0.25  # log-likelihood of a step, and the share of the variance that a certain one explains
_SURE, _DOUBT = 8.0, 5.0  # log-likelihoods: by which a column is likelier than all others, or about as likely
_WINDOWS, _PATTERNS = 24, 3  # windows of columns, and patterns over rows in which their means differ most
_POSITIVE = 0.5  # the mean cosine of a row of a kernel map with equal entries


def find_blocks(Z: Any) -> tuple[slice, ...]:
    """The columns of each block of an embedding; all columns as one if nothing certain is found."""
    n_rows, n_columns = Z.shape
    whole = (slice(0, n_columns),)
    if sp.issparse(Z) or n_rows < _FEWEST_ROWS or n_columns > _MOST_COLUMNS:
        return whole
    used = np.linspace(0, n_rows - 1, min(n_rows, _MOST_ROWS)).astype(np.intp)
    rows = np.asarray(Z[used], dtype=np.float64)
    largest = np.abs(rows).max()
    if largest == 0:
        return whole
    rows /= largest  # squares that can be added
    with one_blas_thread():  # the same bits at any number of threads
        runs = _of_one_length(rows)
        ends = sorted({0, n_columns}.union(*runs))
        steps = [
            first + step
            for first, end in pairwise(ends)
            if (first, end) not in runs
            for step in _steps(rows[:, first:end], known=bool(runs))
        ]
    blocks = tuple(slice(*part) for part in pairwise(sorted([*ends, *steps])))
    return blocks if len(blocks) <= _MOST else whole


# --- rows of one length ---------------------------------------------------------------------------------------


def _of_one_length(rows: np.ndarray) -> list[tuple[int, int]]:
    """The shortest runs of columns (first, end) in which all rows have one length."""
    n_rows, n_columns = rows.shape
    sums = np.zeros((n_rows, n_columns + 1))
    np.cumsum(rows**2, axis=1, out=sums[:, 1:])
    # Contrasts of the rows are the same before and after such a run.
    contrasts = np.random.default_rng(0).standard_normal((_CONTRASTS, n_rows)) / np.sqrt(n_rows)
    values = (contrasts - contrasts.mean(axis=1, keepdims=True)) @ sums
    order = np.argsort(values[0], kind="stable")
    ordered, tolerance = values[0, order], _ROUNDING * sums[:, -1].mean()
    runs, first = [], 0
    while first < n_columns:
        near = order[slice(*np.searchsorted(ordered, values[0, first] + [-tolerance, tolerance]))]
        near = near[np.abs(values[:, near] - values[:, [first]]).max(axis=0) <= tolerance]
        ends = (int(end) for end in np.sort(near) if end > first)
        end = next((end for end in ends if _are_one(sums[:, end] - sums[:, first])), first)
        if end - first >= _SHORTEST and np.count_nonzero(rows[:, first:end]) > 0.9 * n_rows * (end - first):
            end = _with_tail(rows, first, end)
            runs.append((first, end))
        first = max(end if runs and runs[-1][1] == end else 0, first + 1)
    return runs


def _are_one(squares: np.ndarray) -> bool:
    return bool(np.abs(squares - squares.mean()).max() <= _ROUNDING * squares.mean())


def _with_tail(rows: np.ndarray, first: int, end: int) -> int:
    """The end of a run with the columns after it that rounding hides: its last axes."""
    squares = np.mean(rows[:, first:] ** 2, axis=0)
    some = squares[: end - first].sum()
    while end < rows.shape[1] and squares[end - first] <= _ROUNDING * some:
        end += 1
    return end


# --- steps ----------------------------------------------------------------------------------------------------


def _steps(rows: np.ndarray, *, known: bool) -> list[int]:
    """The borders between kernel maps side by side; none unless all parts are rows of such a map.

    Unless the columns are known to be of an embedding, all parts must be equally wide.
    """
    n_columns = rows.shape[1]
    if rows.mean(axis=0).min() <= 0 or not _is_positive(rows, _POSITIVE / np.sqrt(_MOST)):
        return []
    likely = _likely(rows)
    if len(likely) > _MOST_TRIED:
        return []
    cuts = _with_known_widths(rows, *_certain(rows, likely))
    parts = list(pairwise([0, *cuts, n_columns]))
    known = known or len({end - first for first, end in parts}) == 1
    return cuts if known and all(_is_positive(rows[:, slice(*part)]) for part in parts) else []


def _likely(rows: np.ndarray) -> list[int]:
    """The likeliest borders, each between those before."""
    cuts, parts = [], [(0, rows.shape[1])]
    while parts and len(cuts) <= _MOST_TRIED:
        first, end = parts.pop()
        likelihoods = _likelihoods(rows[:, first:end])
        if likelihoods.max() >= _STEP:
            cuts.append(first + int(np.argmax(likelihoods)))
            parts += [(first, cuts[-1]), (cuts[-1], end)]
    return sorted(cuts)


def _certain(rows: np.ndarray, cuts: list[int]) -> tuple[list[int], list[int]]:
    """The borders that are certain between the ones beside them, and the others."""
    place, doubtful = lru_cache(maxsize=None)(partial(_place, rows)), []
    while True:
        ends = [0, *cuts, rows.shape[1]]
        placed = [place(before, after) for before, after in zip(ends, ends[2:], strict=False)]
        least = min(range(len(cuts)), key=lambda k: placed[k][1], default=None)
        if least is None or placed[least][1] >= _SURE:
            return [cut for cut, _ in placed], doubtful
        doubtful.append(cuts[least])
        cuts = [*cuts[:least], *cuts[least + 1 :]]


def _with_known_widths(rows: np.ndarray, cuts: list[int], doubtful: list[int]) -> list[int]:
    """The certain borders, and doubtful ones that give a block the width of another one, if it divides the columns."""
    for cut in doubtful:
        ends = [0, *cuts, rows.shape[1]]
        first, end = next((a, b) for a, b in pairwise(ends) if a <= cut <= b)
        known = {b - a for a, b in pairwise(ends) if (a, b) != (first, end) and (end - first) % (b - a) == 0}
        likelihoods = _likelihoods(rows[:, first:end])
        likely = np.flatnonzero(likelihoods >= max(likelihoods.max() - _DOUBT, _STEP)).tolist()
        fitting = [k for k in likely if k in known or end - first - k in known]
        if fitting:
            cuts = sorted([*cuts, first + max(fitting, key=lambda k: likelihoods[k])])
    return cuts


def _place(rows: np.ndarray, first: int, end: int) -> tuple[int, float]:
    """The likeliest border between two columns, and how much likelier it is than all others; 0 for a small step."""
    likelihoods = _likelihoods(rows[:, first:end])
    best = int(np.argmax(likelihoods))
    is_large = likelihoods[best] >= -(end - first) / 2 * np.log(1 - _SHARE)
    return first + best, float(likelihoods[best] - np.delete(likelihoods, best).max()) if is_large else 0.0


def _likelihoods(rows: np.ndarray) -> np.ndarray:
    """The log-likelihood of a step before each column, compared with none; −∞ near the ends, (column,).

    The columns are compared by their coordinates along a few patterns over the rows, which are normal with one
    covariance on both sides of a step.
    """
    n_columns = rows.shape[1]
    result = np.full(n_columns, -np.inf)
    if n_columns < 2 * _NARROWEST:
        return result
    firsts = np.unique(np.linspace(0, n_columns, _WINDOWS, endpoint=False).astype(np.intp))
    windows = np.add.reduceat(rows, firsts, axis=1) / np.diff([*firsts, n_columns])
    x = rows.T @ np.linalg.svd(windows, full_matrices=False)[0][:, :_PATTERNS]
    x -= x.mean(axis=0)
    k = np.arange(_NARROWEST, n_columns - _NARROWEST + 1)
    before = np.cumsum(x, axis=0)[k - 1]
    explained = np.einsum("ki,ij,kj->k", before, np.linalg.pinv(x.T @ x), before) * (1 / k + 1 / (n_columns - k))
    result[k] = -n_columns / 2 * np.log(np.maximum(1 - explained, np.finfo(float).eps))
    return result


def _is_positive(rows: np.ndarray, least: float = _POSITIVE) -> bool:
    """Whether the rows can be of a kernel map: their entries are positive on the whole."""
    lengths = np.linalg.norm(rows, axis=1)
    some = lengths > 0
    cosines = rows[some].sum(axis=1) / (lengths[some] * np.sqrt(rows.shape[1]))
    return bool(some.any() and cosines.mean() > least)
