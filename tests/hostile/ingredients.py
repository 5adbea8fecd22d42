"""Hostile ingredients: arrays, graphs and sets, drawn from a seeded generator; `parameters` has those of options.

About half of what is drawn is sound, so that a case reaches the code behind the checks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import scipy.sparse as sp

from fishergraph import Graph, Multisets

Rng = np.random.Generator


def pick(rng: Rng, options: Any) -> Any:
    """One of the options."""
    options = list(options)
    return options[int(rng.integers(len(options)))]


# --- values -----------------------------------------------------------------------------------------------


def _spot(value: float) -> Callable[[Rng, tuple], np.ndarray]:
    """Normal numbers with the value in one entry."""

    def make(rng: Rng, shape: tuple) -> np.ndarray:
        array = rng.normal(size=shape)
        if array.size:
            array.flat[int(rng.integers(array.size))] = value
        return array

    return make


def _scaled(scale: float) -> Callable[[Rng, tuple], np.ndarray]:
    return lambda rng, shape: rng.normal(size=shape) * scale


def _column(rng: Rng, shape: tuple) -> np.ndarray:
    """One column of another size than the rest."""
    array = rng.normal(size=shape)
    array[..., :1] *= 10.0 ** int(rng.integers(-40, 40))
    return array


NORMAL: Callable[[Rng, tuple], np.ndarray] = lambda rng, shape: rng.normal(size=shape)  # noqa: E731
VALUES: dict[str, Callable[[Rng, tuple], np.ndarray]] = {
    "zeros": lambda rng, shape: np.zeros(shape),
    "equal": lambda rng, shape: np.full(shape, rng.normal()),
    "duplicates": lambda rng, shape: np.broadcast_to(rng.normal(size=shape[1:]), shape).copy(),
    "counts": lambda rng, shape: rng.poisson(1.0, size=shape).astype(float),
    "offset": lambda rng, shape: 1e8 + rng.normal(size=shape),
    "times": lambda rng, shape: np.floor(1.6e9 + 100 * rng.random(shape)),
    "nan": _spot(np.nan),
    "inf": _spot(np.inf),
    "-inf": _spot(-np.inf),
    "spot 1e20": _spot(1e20),
    "spot 1e30": _spot(-1e30),
    "spot 1e300": _spot(1e300),
    "denormal": _scaled(5e-324),
    "float32 denormal": _scaled(1e-42),
    "column": _column,
    **{
        f"{scale:g}": _scaled(scale)
        for scale in (1e-300, 1e-30, 1e-18, 1e-8, 1e8, 1e15, 1e17, 1e19, 1e20, 1e30, 1e150, 1e300)
    },
}

DTYPES = (
    "bool",
    "i1",
    "u1",
    "i2",
    "u2",
    "i4",
    "u4",
    "i8",
    "u8",
    "f2",
    "f4",
    "f8",
    "g",
    ">f4",
    ">f8",
    ">i4",
    ">i8",
    ">u2",
)
STRANGE = ("c8", "c16", "M8[s]", "M8[ns]", "m8[s]", "m8[ns]", "U8", "S8", "O", "V8")


def dense(rng: Rng, shape: tuple) -> tuple[str, np.ndarray]:
    """An array of some type, order and kind of values."""
    name = pick(rng, VALUES) if rng.random() < 0.35 else "normal"
    array = VALUES.get(name, NORMAL)(rng, shape)
    with np.errstate(all="ignore"):
        kind = "f8"
        if rng.random() < 0.5:
            kind = pick(rng, DTYPES)
            array = array.astype(kind)
        elif rng.random() < 0.15:
            kind = pick(rng, STRANGE)
            array = _cast(array, kind)
    layout = pick(rng, LAYOUTS) if shape and rng.random() < 0.2 else "plain"
    return f"{name} {kind} {layout}", LAYOUTS[layout](array)


def _cast(array: np.ndarray, kind: str) -> np.ndarray:
    if kind == "V8":
        return np.zeros(array.shape, dtype=[("a", "f4"), ("b", "i4")])
    if kind[0] in "Mm":
        return np.nan_to_num(array * 100, posinf=0, neginf=0).astype("i8").astype(kind)
    return array.astype(kind)


def _read_only(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.flags.writeable = False
    return array


def _integers_beyond(array: np.ndarray) -> np.ndarray:
    return np.full(array.shape, 2**53 + 1, dtype=np.uint64) + np.arange(array.size, dtype=np.uint64).reshape(
        array.shape
    )


LAYOUTS: dict[str, Callable[[np.ndarray], Any]] = {
    "plain": lambda a: a,
    "fortran": np.asfortranarray,
    "backwards": lambda a: a[::-1, ..., ::-1] if a.ndim > 1 else a[::-1],
    "read-only": _read_only,
    "every other": lambda a: np.repeat(a, 2, axis=0)[::2],
    "broadcast": lambda a: np.broadcast_to(a[:1], a.shape),
    "big integers": _integers_beyond,
    "no rows": lambda a: a[:0],
    "no columns": lambda a: a[..., :0],
    "one row": lambda a: a[:1],
    "0-d": lambda a: np.array(1.0),
    "1-d": lambda a: a.reshape(-1),
    "3-d": lambda a: a[None],
    "matrix": lambda a: np.asmatrix(a) if a.ndim == 2 else a,
    "masked": lambda a: np.ma.masked_array(a, mask=np.zeros(a.shape, bool)),
    "masked entries": lambda a: np.ma.masked_array(a, mask=np.arange(a.size).reshape(a.shape) % 5 == 0),
}

JUNK = (
    None,
    "",
    "x",
    0,
    -1,
    3.5,
    np.nan,
    [],
    {},
    (),
    b"x",
    object(),
    [[]],
    [[1, 2], [3]],
    [["a", "b"]],
    {"a": [1]},
    [None],
    {1, 2},
    range(5),
    (x for x in "ab"),
    [[1j]],
    [[2**70]],
    [[np.ma.masked, 1.0]],
)


def matrix(rng: Rng, n: int, d: int) -> tuple[str, Any]:
    """Features of n rows: an array, nested lists, a table, a sparse matrix, or something else."""
    if rng.random() < 0.03:
        junk = pick(rng, JUNK)
        return f"junk {str(junk)[:20]}", junk
    name, array = dense(rng, (n, d))
    container = pick(rng, CONTAINERS) if rng.random() < 0.45 else "array"
    try:
        return f"{container} of {name}", CONTAINERS[container](rng, array)
    except (ValueError, TypeError, OverflowError, IndexError, pd.errors.OutOfBoundsDatetime):
        return name, array  # NumPy, pandas or SciPy does not build it


def _table(rng: Rng, array: np.ndarray) -> Any:
    names = [f"f{k}" for k in range(array.shape[1])] if rng.random() < 0.8 else ["a"] * array.shape[1]
    frame = pd.DataFrame(array, columns=names)
    if rng.random() < 0.3:
        frame[names[0]] = pick(
            rng,
            [
                pd.Series(["x"] * len(frame)),
                pd.date_range("2020", periods=len(frame)),
                7,
                2**60,
                True,
                pd.Series([1] * len(frame), dtype="Int64"),
                pd.NA,
            ],
        )
    return frame


def sparse(rng: Rng, array: np.ndarray) -> Any:
    """A sparse matrix of some format, at times with an index that points outside."""
    kept = np.where(rng.random(array.shape) < 0.5, array, np.zeros_like(array))
    form = pick(rng, ("csr", "csc", "coo", "bsr", "lil", "dia", "dok"))
    rows = sp.coo_array(kept) if rng.random() < 0.5 else sp.coo_matrix(kept)
    found: Any = rows.asformat(form)
    return damaged(rng, found) if rng.random() < 0.3 else found


def damaged(rng: Rng, A: Any) -> Any:
    """A sparse matrix with duplicates, explicit zeros, wide indices, or indices that lie."""
    how = int(rng.integers(9))
    if A.format == "coo" and A.nnz and how < 4:
        A = A.copy()
        A.coords[how % 2][0] = pick(rng, (-1, 10**6, 2**31 - 1))
        return A
    A = A.tocsr() if A.format not in ("csr", "csc") else A.copy()
    if not A.nnz:
        return A
    if how == 0:
        A.indices[0] = pick(rng, (-1, 10**6, 2**31 - 1))
    elif how == 1:
        A.indptr[1] = pick(rng, (-5, 10**6))
    elif how == 2:
        A.indptr[-1] = A.nnz + 1000
    elif how == 3:
        A.indptr[0] = 3
    elif how == 4:
        A.data[0] = 0
    elif how == 5:
        A.indices, A.indptr = A.indices.astype(np.int64), A.indptr.astype(np.int64)
    elif how == 6:
        A.data = A.data[:-1]
    elif how == 7:
        A.indices = A.indices.astype(np.float64)
    else:
        A.indices[:] = A.indices[0]
    return A


CONTAINERS: dict[str, Callable[[Rng, np.ndarray], Any]] = {
    "list": lambda rng, a: a.tolist(),
    "objects": lambda rng, a: a.astype(object),
    "table": _table,
    "sparse": sparse,
    "rows": lambda rng, a: list(a),
    "memory": lambda rng, a: memoryview(np.ascontiguousarray(a)),
    "array": lambda rng, a: a,
}


def vector(rng: Rng, n: int) -> tuple[str, Any]:
    """n numbers: weights, scores or the like."""
    if rng.random() < 0.1:
        junk = pick(rng, JUNK)
        return f"junk {str(junk)[:20]}", junk
    name, array = dense(rng, (n if rng.random() < 0.9 else n + 1,))
    if array.dtype.kind == "f" and rng.random() < 0.7:
        with np.errstate(all="ignore"):
            array = np.abs(array)
    return name, array.tolist() if rng.random() < 0.2 else array


# --- graphs and sets ----------------------------------------------------------------------------------------


def edge_weights(rng: Rng, n: int) -> np.ndarray:
    scale = pick(rng, (1.0, 1.0, 1.0, 1e-38, 1e38, 1e-300, 1e300, 1e-20, 1e25))
    weights = rng.random(n) * scale
    if n and rng.random() < 0.2:
        weights[int(rng.integers(n))] = pick(rng, (0.0, -1.0, np.nan, np.inf, -np.inf, 5e-324))
    with np.errstate(over="ignore"):
        return weights.astype(pick(rng, ("f4", "f8", "f8", "g", "f2", "i4"))) if np.isfinite(weights).all() else weights


def adjacency(rng: Rng, n: int) -> sp.csr_array:
    n_edges = int(rng.integers(0, 4 * n))
    kind = pick(rng, ("random", "random", "random", "loops", "none", "star", "ring"))
    ends = {
        "random": rng.integers(0, n, size=(2, n_edges)),
        "loops": np.stack([np.arange(n)] * 2),
        "none": np.zeros((2, 0), int),
        "star": np.stack([np.zeros(n, int), np.arange(n)]),
        "ring": np.stack([np.arange(n), np.roll(np.arange(n), 1)]),
    }[kind]
    data = np.ones(ends.shape[1]) if rng.random() < 0.6 else edge_weights(rng, ends.shape[1])
    return sp.csr_array(sp.coo_array((data.astype("f8"), tuple(ends)), shape=(n, n)))


def graph(rng: Rng, n: int) -> tuple[str, Any]:
    """A graph of n nodes, or nearly so, in one of the forms that people have."""
    A = adjacency(rng, n)
    form = pick(rng, GRAPHS) if rng.random() < 0.5 else "csr"
    try:
        return f"graph {form}", GRAPHS[form](rng, A)
    except (ValueError, TypeError, OverflowError, IndexError):
        return "graph csr", A


def _edges(rng: Rng, A: sp.csr_array) -> np.ndarray:
    ends = np.stack(A.nonzero())
    if ends.size and rng.random() < 0.3:
        ends[int(rng.integers(2)), 0] = pick(rng, (-1, A.shape[0], 10**6, 2**40, -(2**40)))
    return ends.astype(pick(rng, ("i8", "i8", "i4", "u1", "u8", "f8", "bool", ">i8", "O", "i2")))


def _record(rng: Rng, A: sp.csr_array) -> Later:
    """A record made by hand, sound or not."""
    indptr, indices, weights = A.indptr.astype(np.int64), A.indices.copy(), A.data.copy()
    how = int(rng.integers(10))
    if how == 0 and len(indices):
        indices[0] = pick(rng, (-1, A.shape[0], 10**6))
    elif how == 1:
        indptr = indptr[::-1].copy()
    elif how == 2:
        indptr[-1] += 5
    elif how == 3:
        weights = weights[:-1]
    elif how == 4 and len(weights):
        weights[0] = pick(rng, (-1, np.nan, np.inf))
    elif how == 5:
        indices = indices.astype(pick(rng, ("u1", "u2", "u4", "f8", "i8", "O")))
    elif how == 6:
        indptr = indptr.astype(pick(rng, ("i4", "u8", "f8")))
    elif how == 7:
        indptr = pick(rng, (np.zeros(0, np.int64), np.zeros(1, np.int64), None, [0, 1]))
    kept = None if rng.random() < 0.5 else weights
    return Later(lambda: Graph(indptr, indices, kept))


def _networkx(rng: Rng, A: sp.csr_array) -> Any:
    made = nx.from_scipy_sparse_array(A, create_using=pick(rng, (nx.Graph, nx.DiGraph, nx.MultiGraph)))
    return nx.relabel_nodes(made, {k: f"n{k}" for k in made}) if rng.random() < 0.3 else made


def _edge_table(rng: Rng, A: sp.csr_array) -> pd.DataFrame:
    source, target = A.nonzero()
    names = pick(rng, (("source", "target"), ("u", "v"), ("a", "b")))
    frame = pd.DataFrame({names[0]: source, names[1]: target})
    if rng.random() < 0.5:
        frame["weight"] = edge_weights(rng, len(frame))
    if rng.random() < 0.3:
        frame[names[0]] = frame[names[0]].map(lambda k: pick(rng, (f"n{k}", None, k)))
    return frame


def _wrong_shape(rng: Rng, A: sp.csr_array) -> Any:
    n = A.shape[0]
    return pick(rng, (A[:-1], A[:, :-1], A[:-1][:, :-1], sp.csr_array((n + 1, n + 1)), sp.csr_array((0, 0))))


GRAPHS: dict[str, Callable[[Rng, sp.csr_array], Any]] = {
    "csr": lambda rng, A: A,
    "other format": lambda rng, A: A.asformat(pick(rng, ("csc", "coo", "bsr", "lil", "dia", "dok"))),
    "old matrix": lambda rng, A: sp.csr_matrix(A),
    "damaged": damaged,
    "typed": lambda rng, A: A.astype(pick(rng, ("i4", "f4", "bool", "c8", "i8", "g"))),
    "edges": _edges,
    "edges and weights": lambda rng, A: (_edges(rng, A), edge_weights(rng, A.nnz)),
    "record": _record,
    "networkx": _networkx,
    "table": _edge_table,
    "shape": _wrong_shape,
    "dense": lambda rng, A: A.toarray(),
    "junk": lambda rng, A: pick(rng, JUNK),
    "none": lambda rng, A: None,
}


def multisets(rng: Rng, n: int) -> tuple[str, Any]:
    """Multisets over n points, made by hand."""
    sizes = rng.integers(0, 5, size=int(rng.integers(1, 8)))
    indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    indices = rng.integers(0, n, size=indptr[-1]).astype(pick(rng, ("i4", "i8", "i4", "u1", "u2", "i2")))
    weights = None if rng.random() < 0.5 else edge_weights(rng, len(indices))
    how, n_points = int(rng.integers(14)), n
    if how == 0 and len(indices):
        indices[0] = pick(rng, (n, 100))
    elif how == 1:
        indptr = indptr[::-1].copy()
    elif how == 2:
        indptr = indptr + 3
    elif how == 3:
        n_points = pick(rng, (n + 1, 0, -1, None, 2**70))
    elif how == 4:
        indices = indices.astype(pick(rng, ("f8", "O", ">i4", "bool")))
    elif how == 5:
        indptr = indptr.astype(pick(rng, ("i4", "u1", "f8", ">i8")))
    elif how == 6:
        weights = weights[:-1] if weights is not None else [1.0] * len(indices)
    elif how == 7:
        return "multisets junk", pick(rng, JUNK)
    return f"multisets {how}", Later(lambda: Multisets(indptr, indices, weights, n_points))  # type: ignore[arg-type]


class Later:
    """Something that is made within the case, so that a refusal counts."""

    def __init__(self, make: Callable[[], Any]):
        self.make = make

    def __repr__(self) -> str:
        cells = [cell.cell_contents for cell in self.make.__closure__ or ()]
        return f"Later{cells}"[:120]


def made(value: Any) -> Any:
    """The value, made now where it, or a part of it, waits."""
    if type(value) in (list, tuple):
        return type(value)(made(part) for part in value)
    if isinstance(value, dict):
        return {key: made(part) for key, part in value.items()}
    return value.make() if isinstance(value, Later) else value


def sets(rng: Rng, d: int) -> tuple[str, Any]:
    """A list of sets of vectors, or what may be mistaken for one."""
    form = pick(rng, SETS) if rng.random() < 0.6 else "list"
    members = [rng.normal(size=(int(rng.integers(0, 5)), d)) for _ in range(int(rng.integers(1, 8)))]
    return f"sets {form}", SETS[form](rng, members)


def _hostile_member(rng: Rng, members: list) -> list:
    k = int(rng.integers(len(members)))
    return [*members[:k], matrix(rng, 3, members[0].shape[1])[1], *members[k + 1 :]]


def _points_indptr(rng: Rng, members: list) -> Any:
    indptr = np.concatenate([[0], np.cumsum([len(m) for m in members])])
    if rng.random() < 0.4:
        indptr = pick(
            rng, (indptr[:-1], indptr + 1, indptr[::-1], indptr.astype(float), indptr.astype("u1"), -indptr, indptr[:0])
        )
    return np.concatenate(members), indptr


SETS: dict[str, Callable[[Rng, list], Any]] = {
    "list": lambda rng, m: m,
    "tuple": lambda rng, m: tuple(m),
    "objects": lambda rng, m: np.array([*m, None], dtype=object)[:-1],
    "hostile member": _hostile_member,
    "mixed widths": lambda rng, m: [*m, np.ones((2, m[0].shape[1] + 1))],
    "empty": lambda rng, m: [np.zeros((0, m[0].shape[1]))] * 3,
    "points and indptr": _points_indptr,
    "3-d": lambda rng, m: rng.normal(size=(3, 4, m[0].shape[1])),
    "lists": lambda rng, m: [x.tolist() for x in m],
    "ragged numbers": lambda rng, m: [[1.0] * len(x) for x in m],
    "sparse": lambda rng, m: [sparse(rng, x) if len(x) else x for x in m],
    "tables": lambda rng, m: [pd.DataFrame(x) for x in m],
    "matrix": lambda rng, m: matrix(rng, 6, m[0].shape[1])[1],
    "generator": lambda rng, m: iter(m),
    "dictionary": lambda rng, m: dict(enumerate(m)),
    "junk": lambda rng, m: pick(rng, JUNK),
}


def graph_list(rng: Rng, d: int) -> tuple[str, Any]:
    """A list of graphs with features, tags or neither."""
    if rng.random() < 0.05:
        return "graphs junk", pick(rng, JUNK)
    entries, names, kind = [], [], pick(rng, ("plain", "features", "tags", "dictionary", "mixed"))
    for _ in range(int(rng.integers(1, 6))):
        n = int(rng.integers(1, 7))
        name, one = graph(rng, n) if rng.random() < 0.3 else ("csr", adjacency(rng, n))
        names.append(name)
        this = pick(rng, ("plain", "features", "tags", "dictionary")) if kind == "mixed" else kind
        X = matrix(rng, n, d)[1] if rng.random() < 0.3 else rng.normal(size=(n, d))
        tags = vector(rng, n)[1] if rng.random() < 0.2 else rng.integers(0, 3, size=n)
        entries.append(
            {
                "plain": one,
                "features": (X, one),
                "tags": (tags, one),
                "dictionary": {"graph": one, "X": X, "tags": tags},
            }[this]
        )
    return f"graphs {kind} {set(names)}", entries
