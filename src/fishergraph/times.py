"""Times of edges, and how much an edge weighs by its age.

    a_vu = Σ_k w_k exp(−(now − t_k) / decay),    over the parallel edges k from u to v

Edges of one pair add their weights, so the sum needs the time of each of them: `EdgeTimes` keeps these beside a graph.
Times are numbers in any unit; dates are seconds since 1970 (UTC).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph._errors import InputError
from fishergraph._records import unchecked
from fishergraph._validation import check_number

TIME_COLUMNS = ("time", "timestamp", "edge_time")
_SECOND = np.timedelta64(1, "s")
_UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0, "y": 365.25 * 86400.0}
# An edge weighs at least this share of a new one: a sum of old edges is still a sum, in float32 too.
_OLDEST = 69.0  # exp(−69) is about 1e-30


@dataclass(frozen=True, eq=False)
class EdgeTimes:
    """The times of the edges of a graph, of every parallel edge apart.

    offsets : edge e of the graph has the entries offsets[e] … offsets[e + 1] − 1, int64.
    times : float64.
    weights : what every entry weighs when it is new; None if all weigh one.
    """

    offsets: np.ndarray
    times: np.ndarray
    weights: np.ndarray | None

    @property
    def latest(self) -> float:
        """The time of the last edge; −inf if there is none."""
        return float(self.times.max(initial=-np.inf))

    def take(self, edges: np.ndarray) -> EdgeTimes:
        """The times of some edges, in that order."""
        sizes = np.diff(self.offsets)[edges]
        offsets = np.zeros(len(edges) + 1, dtype=np.int64)
        np.cumsum(sizes, out=offsets[1:])
        entries = np.repeat(self.offsets[edges] - offsets[:-1], sizes) + np.arange(offsets[-1])
        weights = None if self.weights is None else self.weights[entries]
        return unchecked(EdgeTimes, offsets, self.times[entries], weights)

    def of_subgraph(self, A: sp.csr_array, rows: np.ndarray) -> EdgeTimes:
        """The times of the edges of a subgraph, of which A is the whole graph."""
        numbers = np.arange(1, A.nnz + 1, dtype=np.int64)
        cut = sp.csr_array(sp.csr_array((numbers, A.indices, A.indptr), shape=A.shape)[rows][:, rows])
        cut.sort_indices()
        return self.take(cut.data - 1)

    def both_ways(self, indptr: np.ndarray, indices: np.ndarray) -> EdgeTimes:
        """The times of the edges of compressed rows and of their reverse; an edge listed both ways at once counts once.

        The edges of the result are in the order of its rows and indices.
        """
        n_nodes, rows = len(indptr) - 1, np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        owner = np.repeat(np.arange(len(indices)), np.diff(self.offsets))
        ends = np.stack((rows[owner], indices[owner])).astype(np.int64)
        weights = np.ones(len(self.times)) if self.weights is None else self.weights
        # Parallel edges of one time and direction add; of the two directions the heavier sum counts, as without times.
        keys = np.stack((ends.min(axis=0) * n_nodes + ends.max(axis=0), ends[0] > ends[1]))
        order = np.lexsort((keys[1], self.times, keys[0]))
        pair, turned, times = keys[0][order], keys[1][order], self.times[order]
        starts = np.flatnonzero(_changes(pair, times, turned))
        sums = np.add.reduceat(weights[order], starts) if len(starts) else weights
        pair, times = pair[starts], times[starts]
        events = np.flatnonzero(_changes(pair, times))
        heavier = np.maximum.reduceat(sums, events) if len(events) else sums
        low, high = np.divmod(pair[events], n_nodes)
        back = low != high
        sides = (np.concatenate((low, high[back])), np.concatenate((high, low[back])))
        again = np.concatenate((np.arange(len(low)), np.flatnonzero(back)))
        weights = None if self.weights is None and (heavier == 1).all() else heavier[again]
        return collect_times(sides[1], sides[0], times[events][again], weights)

    def aged_weights(self, decay: float | str, now: float | str | None) -> np.ndarray:
        """a_vu: the weight of every edge by the age of its entries, float64."""
        ages = (self._reference(now) - self.times) / duration(decay)
        weights = np.exp(-np.minimum(ages, _OLDEST))
        if self.weights is not None:
            weights *= self.weights
        return np.add.reduceat(weights, self.offsets[:-1]) if len(weights) else weights

    def _reference(self, now: float | str | None) -> float:
        """The time from which ages count."""
        latest, at = self.latest, self.latest if now is None else moment(now)
        if latest > at:
            last = str(np.datetime64(int(latest), "s")) if isinstance(now, str) else f"{latest:g}"
            expected, advice = f"not be before the last edge, at {last}", "leave later edges out, or leave now out"
            raise InputError(parameter="now", value=now, expected=expected, advice=advice)
        return at


def collect_times(source: np.ndarray, target: np.ndarray, times: np.ndarray, weights: np.ndarray | None) -> EdgeTimes:
    """The times of edges by the entries of their graph, whose rows are targets; edges of weight zero are left out."""
    if weights is not None and len(weights) and weights.min() == 0:
        kept = weights > 0
        source, target, times, weights = source[kept], target[kept], times[kept], weights[kept]
    order = np.lexsort((times, source, target))
    source, target = source[order], target[order]
    offsets = np.append(np.flatnonzero(_changes(target, source)), len(order)).astype(np.int64)
    return unchecked(EdgeTimes, offsets, times[order], None if weights is None else weights[order])


def _changes(*columns: np.ndarray) -> np.ndarray:
    """Whether an entry differs from the one before in any column; the first one does."""
    changes = np.zeros(len(columns[0]), dtype=bool)
    changes[:1] = True
    for column in columns:
        changes[1:] |= column[1:] != column[:-1]
    return changes


def as_times(values: Any, n_edges: int) -> np.ndarray | None:
    """Times as float64; None if the values are not finite numbers or dates, one per edge."""
    if values is None:
        return None
    if type(values).__module__.startswith("pyarrow"):
        values = values.to_numpy(**({} if hasattr(values, "chunks") else {"zero_copy_only": False}))
    array = np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)
    array = array.reshape(-1) if array.ndim == 2 and array.shape[1] == 1 else array
    if array.shape != (n_edges,):
        return None
    array = _typed(array.tolist(), array) if array.dtype.kind == "O" else array
    if array.dtype.kind == "M":
        return None if np.isnat(array).any() else ((array - np.datetime64(0, "s")) / _SECOND).astype(np.float64)
    return array.astype(np.float64) if array.dtype.kind in "iuf" and np.isfinite(array).all() else None


def _typed(entries: list, otherwise: np.ndarray) -> np.ndarray:
    """Python's dates or numbers as an array of them; the other array if they are anything else."""
    if entries and all(isinstance(entry, (int, float)) and not isinstance(entry, bool) for entry in entries):
        return np.array(entries, dtype=np.float64)
    if entries and all(isinstance(entry, date) for entry in entries):
        return np.array([_naive(entry) for entry in entries], dtype="M8[us]")
    return otherwise


def _naive(entry: date) -> date:
    """A date without a zone, in UTC."""
    if isinstance(entry, datetime) and entry.tzinfo is not None:
        return entry.astimezone(UTC).replace(tzinfo=None)
    return entry


def moment(now: float | str) -> float:
    """A time as a number: seconds since 1970 of a date such as 2024-01-31 or 2024-01-31T12:00."""
    if not isinstance(now, str):
        return check_number(now, "now", least=-1e300)
    try:
        parsed = np.datetime64(now.strip(), "us")
    except ValueError:
        parsed = np.datetime64("NaT", "us")
    if np.isnat(parsed):
        raise InputError(parameter="now", value=now, expected="be a number, or a date such as '2024-01-31'")
    return float((parsed - np.datetime64(0, "s")) / _SECOND)


def duration(decay: float | str) -> float:
    """A duration as a number: of a text such as 30d its seconds."""
    if not isinstance(decay, str):
        return check_number(decay, "decay", strict=True)
    text = decay.strip().lower()
    unit = next((unit for unit in sorted(_UNITS, key=len, reverse=True) if text.endswith(unit)), "")
    try:
        number = float(text.removesuffix(unit)) if unit else 0.0
    except ValueError:
        number = 0.0
    if not 0 < number < np.inf:
        units = ", ".join(_UNITS)
        expected = f"be a number, or a duration such as '30d' (units {units})"
        raise InputError(parameter="decay", value=decay, expected=expected)
    return number * _UNITS[unit]


def check_decay(decay: float | str | None, now: float | str | None) -> None:
    """Raise unless these are options of ageing weights."""
    if decay is not None:
        duration(decay)
    if now is not None:
        moment(now)
        if decay is None:
            advice = "pass decay, or leave now out"
            raise InputError(parameter="now", value=now, expected="be None without decay", advice=advice)
