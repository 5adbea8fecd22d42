"""From ids to the rows of a store, and the error for ids that it does not have."""

from __future__ import annotations

import difflib
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow.compute import SetLookupOptions, call_function

from fishergraph._errors import InputError, UnknownNodeError, shown
from fishergraph.scale.ingestion.ids import UNKNOWN, another_end
from fishergraph.scale.store import Store

_CHUNK = 2**20  # ids that are compared at once
_CANDIDATES = 20_000  # ids among which similar ones are looked for
_FIRST = 5


class NodeIds:
    """The ids of the nodes of a store.

    Parameters
    ----------
    store : Store
        The store.
    """

    def __init__(self, store: Store):
        self.n_nodes, self.ids = store.n_nodes, store.ids
        removed = np.zeros(0, np.int64) if store.removed is None else store.removed[:]
        self.removed = removed
        self.is_text = store.ids is not None and store.ids.is_text

    def as_ids(self, wanted: Any, name: str) -> np.ndarray:
        """The ids in the type of those of the store: int64, or an array of texts."""
        ids = wanted if isinstance(wanted, pa.Array | pa.ChunkedArray) else pa.array(wanted)
        if self.is_text:
            return np.asarray(ids.cast(pa.large_string()).to_pylist(), dtype=object)
        try:
            return np.asarray(ids.cast(pa.int64()))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            expected = "be integers, as those of the store"
            raise InputError(parameter=name, value=ids[0].as_py(), expected=expected) from None

    def rows(self, wanted: np.ndarray, *, removed: bool = False) -> np.ndarray:
        """The row of every id; -1 if there is none, or if its node was removed (unless those are asked for)."""
        found = np.full(len(wanted), -1, np.int64)
        if self.ids is None:
            inside = (wanted >= 0) & (wanted < self.n_nodes)
            found[inside] = wanted[inside]
        elif self.is_text:
            values = pa.array(wanted).cast(pa.large_string())
            for start in range(0, self.n_nodes, _CHUNK):
                self._match(self.ids.texts(slice(start, start + _CHUNK)), start, values, found)
        else:
            order = np.argsort(wanted, kind="stable")
            ranked = wanted[order]
            for start in range(0, self.n_nodes if len(wanted) else 0, _CHUNK):
                chunk = self.ids[start : start + _CHUNK]
                places = np.minimum(np.searchsorted(ranked, chunk), len(ranked) - 1)
                hits = np.flatnonzero(ranked[places] == chunk)
                found[order[places[hits]]] = start + hits
        if not removed and len(self.removed):
            found[np.isin(found, self.removed)] = -1
        return found

    def _match(self, texts: pa.Array, start: int, wanted: pa.Array, found: np.ndarray) -> None:
        places = call_function("index_in", [wanted], SetLookupOptions(value_set=texts))
        hits = np.flatnonzero(np.asarray(places.is_valid()))
        found[hits] = start + np.asarray(places.drop_null())

    def near(self, node: Any) -> list[Any]:
        """Up to two ids of the store that are written much like this one."""
        step = max(self.n_nodes // _CANDIDATES, 1)
        rows = slice(0, self.n_nodes, step)
        ids = np.arange(self.n_nodes)[rows] if self.ids is None else self.ids[:][rows]
        words = {str(one).lower(): one for one in ids.tolist()}
        return [words[word] for word in difflib.get_close_matches(str(node).lower().strip(), words, n=2)]

    def unknown(self, parameter: str, ends: list[tuple[int, Any]], count: int) -> UnknownNodeError:
        """The error for so many edges that end at nodes which the store does not have."""
        words = []
        for edge, node in islice(ends, _FIRST):
            near = self.near(node)
            words.append(f"{shown(node)} of edge {edge}" + (f" (near {', '.join(map(shown, near))})" if near else ""))
        return UnknownNodeError(
            parameter=parameter,
            value=ends[0][1],
            expected=f"end at two of the {self.n_nodes:,} nodes of the store",
            got=another_end(count, words),
            settings=UNKNOWN,
        )
