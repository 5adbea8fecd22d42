"""Neighbourhoods of seed nodes, sampled hop by hop from compressed rows without replacement.

Nodes are numbered in the order in which they are found, seeds first, and a node is expanded once, in the hop after the
one that found it. So the expanded nodes are the first local numbers and their entries lie row by row: what is sampled
is in compressed order by itself, and nothing is sorted.

Random numbers are counted (`counters.py`): those of a row depend on the key of the batch and on the node alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from fishergraph._compile import compiled, inner, readonly
from fishergraph.counters import STEP, below, row_state


def _index_type(n_nodes: int) -> type:
    """The narrower type that numbers the nodes."""
    return np.int32 if n_nodes < 2**31 else np.int64


class Hop(NamedTuple):
    """The members of some nodes that are expanded: row rows[i] lists those of node i, with its self-loops in front.

    loops : (row,), how many entries at the front of a row are always kept and do not count against a fan-out.
    entries : (entry,), the caller's number of every entry, or None if they are in the caller's order.
    weights : (entry,), or None if the caller has them, or there are none.
    """

    rows: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    loops: np.ndarray
    entries: np.ndarray | None
    weights: np.ndarray | None


class Members(Protocol):
    """What is sampled from: the members of all nodes, of which those that are expanded are read."""

    @property
    def n_nodes(self) -> int: ...

    def hops(self, nodes: np.ndarray) -> Iterator[Hop]:
        """The members of these nodes, of one part of them after the other."""
        ...


def new_map(members: Members) -> np.ndarray:
    """A map from nodes to local numbers for one thread, (node,); −1 everywhere between two samples."""
    return np.full(members.n_nodes, -1, dtype=_index_type(members.n_nodes))


class MemberRows(NamedTuple):
    """Members in memory: row v lists those of node v, with the members equal to v in front of it.

    loops : (node,), how many entries at the front of a row are always kept and do not count against a fan-out.
    entries : (entry,), the caller's number of every entry, or None where they are in the caller's order.
    """

    indptr: np.ndarray
    indices: np.ndarray
    loops: np.ndarray
    entries: np.ndarray | None

    @property
    def n_nodes(self) -> int:
        return len(self.indptr) - 1

    def hops(self, nodes: np.ndarray) -> Iterator[Hop]:
        """All of these nodes at once."""
        yield Hop(nodes, *self, None)


class Neighbourhood(NamedTuple):
    """A sampled neighbourhood, by hops.

    nodes : int64, (local node,), the nodes in the order in which they were found, seeds first.
    edges : int64, (3, edge): source and target in local numbers, and the caller's number of the entry. Targets rise.
    n_nodes : nodes found by each hop, seeds first, (hop + 1,). n_edges : edges of each hop, (hop,).
    weights : (edge,), if they were read with the members.
    """

    nodes: np.ndarray
    edges: np.ndarray
    n_nodes: list[int]
    n_edges: list[int]
    weights: np.ndarray | None


# --- the rows that are sampled from ---------------------------------------------------------------------


def rows_of_edges(sources: np.ndarray, targets: np.ndarray, n_nodes: int, *, keep_loops: bool = True) -> MemberRows:
    """The rows of a list of edges: the sources of every target, in the order of the list."""
    indptr = np.zeros(n_nodes + 1, dtype=np.int64)
    order = np.empty(len(targets), dtype=np.int64)
    _sort_by_target(readonly(targets), indptr, order)
    members = sources[order].astype(_index_type(n_nodes), copy=False)
    rows = rows_of_sets(indptr, members, keep_loops=keep_loops)
    return rows._replace(entries=order if rows.entries is None else order[rows.entries])


def rows_of_sets(indptr: np.ndarray, indices: np.ndarray, *, keep_loops: bool = True) -> MemberRows:
    """The rows of multisets of nodes; copied only where a self-loop is not in front of its row."""
    n_nodes = len(indptr) - 1
    indptr, indices = readonly(np.ascontiguousarray(indptr)), readonly(np.ascontiguousarray(indices))
    if not keep_loops:
        return MemberRows(indptr, indices, np.zeros(n_nodes, dtype=np.int32), None)
    loops, order = loops_first(np.arange(n_nodes), indptr, indices)
    return MemberRows(indptr, indices if order is None else readonly(indices[order]), loops, order)


def loops_first(nodes: np.ndarray, indptr: np.ndarray, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """(row,) the self-loops of every row, whose node is in `nodes`, and the order that leads with them.

    The order is None if they are in front already.
    """
    loops = np.zeros(len(nodes), dtype=np.int32)
    if _count_loops(nodes, indptr, indices, loops):
        return loops, None
    order = np.arange(len(indices))
    _loops_to_front(nodes, indptr, indices, loops, order)
    return loops, order


@compiled
def _sort_by_target(targets, indptr, order):
    """Fill the borders of the rows and the stable order of the edges by target; `indptr` is zero before it."""
    for target in targets:
        indptr[target + 1] += 1
    for v in range(len(indptr) - 1):
        indptr[v + 1] += indptr[v]
    free = indptr[:-1].copy()
    for e in range(len(targets)):
        order[free[targets[e]]] = e
        free[targets[e]] += 1


@compiled
def _count_loops(nodes, indptr, indices, loops):
    """Whether every row has its self-loops in front; their number goes to `loops`."""
    in_front = True
    for row in range(len(loops)):
        for e in range(indptr[row], indptr[row + 1]):
            if indices[e] == nodes[row]:
                in_front &= e == indptr[row] + loops[row]
                loops[row] += 1
    return in_front


@compiled
def _loops_to_front(nodes, indptr, indices, loops, entries):
    """Fill the order of the entries in which self-loops lead their rows; all else keeps its order."""
    for row in range(len(loops)):
        loop, other = indptr[row], indptr[row] + loops[row]
        for e in range(indptr[row], indptr[row + 1]):
            if indices[e] == nodes[row]:
                entries[loop] = e
                loop += 1
            else:
                entries[other] = e
                other += 1


# --- sampling -------------------------------------------------------------------------------------------


def sample_neighbourhood(
    members: Members, seeds: np.ndarray, fan_outs: Sequence[int], key: np.uint64, local: np.ndarray
) -> Neighbourhood:
    """The neighbourhood of the seeds: of every expanded node its self-loops and `fan_out` other entries, −1 is all.

    A seed that is given twice has two rows with the same members. `local` is a map of `new_map` that no other thread
    uses meanwhile.
    """
    nodes, edges = seeds.astype(np.int64), np.empty((3, 0), dtype=np.int64)
    weights: list[Any] = []
    local[nodes] = np.arange(len(nodes))
    n_nodes, n_edges = [len(nodes)], []
    for fan_out in fan_outs:
        first, last, before = len(nodes) - n_nodes[-1], len(nodes), edges.shape[1]
        for hop in members.hops(nodes[first:last]):
            start, size = edges.shape[1], _count_entries(hop.rows, hop.indptr, hop.loops, fan_out)
            # An entry finds one node at most. The last hop outweighs the others, so that copying them costs little.
            known, nodes, edges = len(nodes), _longer(nodes, size), _longer(edges, size)
            arrays = hop.rows, hop.indptr, hop.indices, hop.loops
            nodes = nodes[: _sample_hop(nodes, edges, first, known, start, *arrays, fan_out, key, local)]
            if hop.weights is not None:
                weights.append(hop.weights[edges[2, start:]])
            if hop.entries is not None:
                edges[2, start:] = np.take(hop.entries, edges[2, start:])
            first += len(hop.rows)
        n_nodes.append(len(nodes) - last)
        n_edges.append(edges.shape[1] - before)
    local[nodes] = -1
    return Neighbourhood(nodes, edges, n_nodes, n_edges, np.concatenate(weights) if weights else None)


def _longer(array: np.ndarray, by: int) -> np.ndarray:
    """A copy with room for `by` more along the last axis."""
    longer = np.empty((*array.shape[:-1], array.shape[-1] + by), dtype=array.dtype)
    longer[..., : array.shape[-1]] = array
    return longer


@compiled
def _count_entries(rows, indptr, loops, fan_out):
    """The number of entries that expanding the nodes of these rows takes."""
    size = 0
    for row in rows:
        others = indptr[row + 1] - indptr[row] - loops[row]
        size += loops[row] + (others if fan_out < 0 else min(others, fan_out))
    return size


@compiled
def _sample_hop(nodes, edges, first, known, start, rows, indptr, indices, loops, fan_out, key, local):
    """The number of nodes known after expanding nodes[first:], one for each row, into edges[:, start:].

    Of `nodes` the first `known` are there; new ones join them.
    """
    count, end = known, start
    sources, targets, entries = edges[0], edges[1], edges[2]
    for i in range(len(rows)):
        row = rows[i]
        here, after = indptr[row], indptr[row + 1]
        begin = end
        if fan_out >= 0 and after - here - loops[row] > fan_out:
            after = here + loops[row]
            state = row_state(key, nodes[first + i])
            _choose(after, indptr[row + 1], fan_out, state, entries, end + loops[row])
            end += fan_out
        for e in range(here, after):
            entries[begin + e - here] = e
        end += after - here
        for e in range(begin, end):
            u = indices[entries[e]]
            if local[u] < 0:
                local[u] = count
                nodes[count] = u
                count += 1
            sources[e] = local[u]
            targets[e] = first + i
    return count


@inner
def _choose(row, after, size, state, chosen, begin):
    """Write `size` different numbers of row … after − 1, every subset equally likely, to chosen[begin:]."""
    count = after - row
    if size * size < 8 * count:  # Floyd's sample: few draws, each compared with the earlier ones
        for j in range(size):
            state += STEP
            top = count - size + j
            drawn = row + below(state, top + 1)
            for earlier in range(begin, begin + j):
                if chosen[earlier] == drawn:
                    drawn = row + top
                    break
            chosen[begin + j] = drawn
        return
    taken = 0
    for e in range(count):  # one draw for each entry, where comparing would cost more
        state += STEP
        if below(state, count - e) < size - taken:
            chosen[begin + taken] = row + e
            taken += 1
