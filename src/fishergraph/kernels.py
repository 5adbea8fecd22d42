"""Gram matrices of nodes, sets, graphs for kernel machines: K = ⟨ψ, ψ'⟩ (Eq. 2), positive semidefinite."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj
from array_api_compat import device as device_of
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from fishergraph._errors import InputError, InputTypeError
from fishergraph._parallel import map_blocks, row_blocks
from fishergraph._validation import check_flag, check_n_jobs
from fishergraph.em.unit import unit_rows
from fishergraph.estimators import FisherEmbedding, FisherGraphEmbedding, FisherSetEmbedding


def node_kernel(
    X: Any,
    graph: Any = None,
    other: Any = None,
    other_graph: Any = None,
    *,
    embedding: FisherEmbedding | None = None,
    cosine: bool = False,
    n_jobs: int | None = None,
) -> Any:
    """Kernel of the nodes of a graph, K(v, v') = Σ_t ⟨ψ_t(v), ψ_t(v')⟩ (Eq. 2).

    Parameters
    ----------
    X, graph : matrix and graph
        Features and graph of the nodes, as `FisherEmbedding` takes them.
    other, other_graph : matrix and graph, optional
        Those of the columns' nodes, the training nodes; None for the nodes with themselves.
    embedding : FisherEmbedding, optional
        The estimator whose inner product the kernel is; None is ``FisherEmbedding(random_state=0)``. One that is not
        fitted yet is fitted here, on the other nodes if there are some, and stays so for the next call.
    cosine : bool, default=False
        Divide by √(K(v, v) K(v', v')); zero if one of them is.
    n_jobs : int, optional
        Threads; the result has the same bits at any number, and is symmetric to the last one.

    Returns
    -------
    array of shape (n_nodes, n_nodes) or (n_nodes, n_other_nodes)
        The kernel, float64. Within one graph, cut it: ``SVC(kernel="precomputed").fit(K[train][:, train], y[train])``,
        then ``.predict(K[test][:, train])``.

    See Also
    --------
    set_kernel : The kernel of sets of vectors.
    graph_kernel : The kernel of graphs.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph import FisherEmbedding, node_kernel
    >>> X, ring = np.eye(4), np.array([[0, 1, 2, 3], [1, 2, 3, 0]])
    >>> K = node_kernel(X, ring, embedding=FisherEmbedding(1, 2, 4, random_state=0))
    >>> K.shape
    (4, 4)
    """
    model = _chosen(FisherEmbedding, embedding)
    second = None if other is None and other_graph is None else (other, {"graph": other_graph})
    return _kernel(model, (X, {"graph": graph}), second, cosine, n_jobs)


def set_kernel(
    sets: Any,
    other: Any = None,
    *,
    weights: Any = None,
    other_weights: Any = None,
    embedding: FisherSetEmbedding | None = None,
    cosine: bool = False,
    n_jobs: int | None = None,
) -> Any:
    """Kernel of sets of vectors, K(x, x') = ⟨φ(x), φ(x')⟩ (Eq. 12).

    With a kernel map it is that of ψ.

    Parameters
    ----------
    sets : list of matrices
        The sets, as `FisherSetEmbedding` takes them.
    other : list of matrices, optional
        Those of the columns, the training sets; None for the kernel of the sets with themselves.
    weights, other_weights : arrays, optional
        The weights of their members.
    embedding : FisherSetEmbedding, optional
        None is ``FisherSetEmbedding(random_state=0)``; see `node_kernel`.
    cosine, n_jobs : bool and int
        See `node_kernel`.

    Returns
    -------
    array of shape (n_sets, n_sets) or (n_sets, n_other_sets)
        The kernel, float64.

    See Also
    --------
    node_kernel : The kernel of the nodes of a graph.
    graph_kernel : The kernel of graphs.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph import FisherSetEmbedding, set_kernel
    >>> from sklearn.svm import SVC
    >>> rng = np.random.default_rng(0)
    >>> train, test = ([rng.normal(size=(9, 2)) * (1 + k % 2) for k in range(40)] for _ in range(2))
    >>> y = np.arange(40) % 2
    >>> embedding = FisherSetEmbedding(random_state=0)
    >>> svm = SVC(kernel="precomputed").fit(set_kernel(train, embedding=embedding), y)
    >>> svm.predict(set_kernel(test, train, embedding=embedding)).shape
    (40,)
    """
    model = _chosen(FisherSetEmbedding, embedding)
    if other is None and other_weights is not None:
        raise InputError(
            parameter="other_weights",
            expected="come with other, the sets they belong to",
            got="them alone",
            advice="pass other too, or weights",
        )
    second = None if other is None else (other, {"weights": other_weights})
    return _kernel(model, (sets, {"weights": weights}), second, cosine, n_jobs)


def graph_kernel(
    graphs: Any,
    other: Any = None,
    *,
    embedding: FisherGraphEmbedding | None = None,
    cosine: bool = False,
    n_jobs: int | None = None,
) -> Any:
    """Kernel of graphs, K(G, G') = Σ_t b_t ⟨φ_t(G), φ_t(G')⟩.

    The sum is over the stages of `FisherGraphEmbedding`.

    Parameters
    ----------
    graphs : list of graphs
        Anything that `as_graphs` takes.
    other : list of graphs, optional
        The columns, the training graphs; None for the graphs with themselves.
    embedding : FisherGraphEmbedding, optional
        None is ``FisherGraphEmbedding(random_state=0)``; see `node_kernel`.
    cosine, n_jobs : bool and int
        See `node_kernel`.

    Returns
    -------
    array of shape (n_graphs, n_graphs) or (n_graphs, n_other_graphs)
        The kernel, float64.

    See Also
    --------
    node_kernel : The kernel of the nodes of a graph.
    set_kernel : The kernel of sets of vectors.

    Examples
    --------
    >>> from fishergraph import graph_kernel
    >>> graph_kernel([[(0, 1)], [(0, 1), (1, 2)], [(0, 1), (1, 2), (2, 0)]]).shape
    (3, 3)
    """
    model = _chosen(FisherGraphEmbedding, embedding)
    return _kernel(model, (graphs, {}), None if other is None else (other, {}), cosine, n_jobs)


def _chosen(kind: type, embedding: Any) -> Any:
    """The embedding of a kernel: the one that is given, which must be of the kind, or a new one."""
    if embedding is not None and not isinstance(embedding, kind):
        raise InputTypeError(
            parameter="embedding",
            expected=f"be a {kind.__name__}",
            got=f"{type(embedding).__name__}",
            advice="pass one, or use the kernel function that goes with it",
        )
    return kind(random_state=0) if embedding is None else embedding


def _kernel(model: Any, first: Any, second: Any, cosine: bool, n_jobs: int | None) -> Any:
    """The Gram matrix of two inputs (X, what goes with it), of which the second is the one to learn from."""
    cosine, n_jobs = check_flag(cosine, "cosine"), check_n_jobs(n_jobs)
    try:
        check_is_fitted(model)
    except NotFittedError:
        X, beside = first if second is None else second
        model.fit(X, **beside)
    inputs = [first] if second is None else [first, second]
    return gram(*(_wide(model.transform(X, **beside), cosine) for X, beside in inputs), n_jobs=n_jobs)


def _wide(Z: Any, cosine: bool) -> Any:
    """The embedding in float64, in which products of it keep their sign; as unit vectors where asked for."""
    Z = Z if is_array_api_obj(Z) else np.asarray(Z)  # a table, where scikit-learn's output is set to one
    xp = array_namespace(Z)
    Z = xp.astype(Z, xp.float64)
    return unit_rows(Z) if cosine else Z


def gram(Z: Any, other: Any = None, *, n_jobs: int | None = None) -> Any:
    """K = Z Z'ᵀ, (row, other row), block by block; symmetric to the last bit where there is no other."""
    xp, same = array_namespace(Z), other is None
    right = Z if same else other
    K: Any = xp.empty((Z.shape[0], right.shape[0]), dtype=Z.dtype, device=device_of(Z))

    def fill(rows: slice) -> None:
        first = rows.start if same else 0
        K[rows, first:] = Z[rows] @ right[first:].T
        if same:
            square = xp.triu(K[rows, rows])
            K[rows, rows] = square + xp.triu(square, k=1).T
            K[rows.stop :, rows] = K[rows, rows.stop :].T

    map_blocks(fill, row_blocks(Z.shape[0]), n_jobs=n_jobs)
    return K
