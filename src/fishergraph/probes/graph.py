"""`GraphProbe`: the classifier that suits an embedding and its graph, chosen on validation rows.

The candidates are in heads.py, the rule that chooses among them in choose.py. Plain logistic regression is always a
candidate, and no other is kept unless it is at least as accurate on the validation rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from fishergraph._errors import FishergraphWarning, InputError
from fishergraph._parallel import one_blas_thread
from fishergraph._progress import progress_bar
from fishergraph._typing import GraphLike, MatrixLike, RandomState
from fishergraph._validation import check_random_seed, look_up
from fishergraph._warn import each_warning_once, warn
from fishergraph.graph import as_graph, lists_edges
from fishergraph.probes.base import Probe
from fishergraph.probes.blocks import Blocks, read_blocks
from fishergraph.probes.calibrate import at_temperature
from fishergraph.probes.choose import Scores, choose, score
from fishergraph.probes.heads import HEADS, NEED_GRAPH, TRANSDUCTIVE, Problem, Tried, suitable
from fishergraph.probes.smooth import symmetric_operator
from fishergraph.probes.validation import encode, validate_embedding


class GraphProbe(Probe):
    """Classifier of nodes that chooses its head on validation rows.

    It tries several heads and keeps the best on the validation rows, never one that is less accurate there than
    `LogisticProbe`. Its probabilities are calibrated on the validation rows by one temperature. The heads are

    - "logistic": plain logistic regression;
    - "blocks": logistic regression on some blocks of the columns;
    - "sharpen": regression on the principal axes, scaled by their variances, with unit rows;
    - "self-training": the same, and four rounds in which it learns from its own smoothed predictions on all nodes;
    - "mlp": a network with one hidden layer;
    - "smooth": Correct & Smooth, which spreads errors and labels over the graph, after the best head so far.

    All but "smooth" can predict rows of other nodes. "smooth" predicts the nodes of the fit alone.

    Parameters
    ----------
    graph : graph, default=None
        The graph of the rows, as `as_graph` takes it. Without it "self-training" and "smooth" are left out.
    blocks : sequence, default=None
        The blocks of the columns: widths, pairs (name, width), slices, or one name per column, such as the
        `get_feature_names_out()` of the embedding. None reads the column names of a DataFrame; an array is one block.
    heads : {'auto', 'inductive'} or tuple of str, default='auto'
        The heads to try; "logistic" is always tried. "auto" tries those that suit the number of labels, "inductive"
        those of them that can predict other nodes.
    random_state : int or RandomState, default=None
        Seed of the network, and of the samples of nodes on large graphs.
    verbose : bool or callable, default=False
        Show a progress bar. A callable is used as in `FisherEmbedding`.

    Attributes
    ----------
    chosen_ : dict
        Name of the chosen head under "head", and its options.
    report_ : list of dict
        What was tried: head, options, accuracy and calibrated log-loss on the validation rows, seconds.
    val_score_ : float
        The accuracy of the chosen head on the validation rows.
    C_ : float or None
        The C of the chosen head; None for a network.
    temperature_ : float
        The temperature of the probabilities.
    blocks_ : tuple
        Name and columns of each block.
    classes_ : array of shape (n_classes,)
        Labels of the training rows.

    See Also
    --------
    LogisticProbe : Plain logistic regression, which measures an embedding.
    fishergraph.probes.expected_calibration_error : How far probabilities are from frequencies.

    Examples
    --------
    >>> from fishergraph import FisherEmbedding, GraphProbe, load_graph
    >>> cora = load_graph("cora")
    >>> Z = FisherEmbedding(random_state=0).fit_transform(cora.X, graph=cora.graph)
    >>> probe = GraphProbe(cora.graph, random_state=0).fit(Z, cora.y, train=cora.train, val=cora.val)
    >>> probe.chosen_["head"]
    'self-training'
    """

    def __init__(
        self,
        graph: GraphLike = None,
        *,
        blocks: Sequence[Any] | None = None,
        heads: str | Sequence[str] = "auto",
        random_state: RandomState = None,
        verbose: Any = False,
    ):
        self.graph = graph
        self.blocks = blocks
        self.heads = heads
        self.random_state = random_state
        self.verbose = verbose

    @each_warning_once()
    def fit(self, Z: MatrixLike, y: ArrayLike, train: ArrayLike, val: ArrayLike) -> Self:
        """Fit the heads, and keep the one that is best on validation rows.

        Self-training also uses rows without labels, so Z holds all nodes of the graph.

        Parameters
        ----------
        Z : array, sparse matrix or DataFrame of shape (n, n_features)
            The embedding of all nodes.
        y : array of shape (n,)
            Labels. Only those of `train` and `val` are read.
        train : array of int or bool
            Training rows, as numbers or as a mask.
        val : array of int or bool
            Validation rows, as numbers or as a mask. Labels that no training row has count as errors.

        Returns
        -------
        GraphProbe
            The fitted probe.
        """
        width = validate_embedding(Z).shape[1]
        self.blocks_: Blocks = read_blocks(self.blocks, Z, width)
        return super().fit(Z, y, train, val)

    def _fit(self, Z: Any, y: np.ndarray, train: np.ndarray, val: np.ndarray) -> None:
        problem = self._problem(Z, y, train, val)
        names = _names(self.heads, problem)
        with one_blas_thread():
            tried, seconds = self._try(problem, names)
            scores = [score(one.val_proba, problem.val_codes) for one in tried]
            best = choose(scores)
            self._head = tried[best]
            self.temperature_ = scores[best].temperature
            self._node_proba = at_temperature(self._head.model.proba(Z), self.temperature_)
        self.val_score_, self.C_ = scores[best].accuracy, self._head.C
        self.chosen_ = {"head": self._head.head, **self._head.options}
        self.report_ = [_record(*entry) for entry in zip(tried, scores, seconds, strict=True)]

    def _problem(self, Z: Any, y: np.ndarray, train: np.ndarray, val: np.ndarray) -> Problem:
        """The problem of all heads; sets `classes_`."""
        self.classes_, codes = encode(y[train])
        seed = int(check_random_state(check_random_seed(self.random_state)).randint(2**31 - 1))
        S = None if self.graph is None else _operator(self.graph, Z.shape[0])
        val_codes = _codes_of(y[val], self.classes_)
        absent = [label for k, label in enumerate(self.classes_.tolist()) if k not in val_codes]
        if absent:
            text = f"no validation row has the class {absent[0]!r}, so heads are chosen without it"
            warn("validation", f"{text}; add such rows to val if you have them.", FishergraphWarning)
        return Problem(Z, y, codes, val_codes, train, val, len(self.classes_), self.blocks_, S, seed)

    def _try(self, problem: Problem, names: Sequence[str]) -> tuple[list[Tried], list[float]]:
        """The candidates of the heads, and the seconds that each took."""
        tried: list[Tried] = []
        seconds: list[float] = []
        with progress_bar(self.verbose, unit="head")("choosing a head", len(names)) as bar:
            for name in names:
                start = perf_counter()
                for one in HEADS[name](problem, tuple(tried)):
                    tried.append(one)
                    seconds.append(perf_counter() - start)
                    start = perf_counter()
                bar.set_postfix(head=name, best=max(map(problem.accuracy, tried)))
                bar.update(1)
        return tried, seconds

    def predict_proba(self, Z: MatrixLike = None) -> np.ndarray:
        """Predict calibrated class probabilities.

        Parameters
        ----------
        Z : array, sparse matrix or DataFrame of shape (n, n_features), default=None
            Rows of the embedding; None is the nodes of the fit. If the chosen head is "smooth", all nodes of the graph
            in its order.

        Returns
        -------
        array of shape (n, n_classes)
            Probabilities in the order of `classes_`; rows sum to one.
        """
        check_is_fitted(self)
        return self._node_proba.copy() if Z is None else self._proba(self._checked(Z))

    def predict(self, Z: MatrixLike = None) -> np.ndarray:
        """Predict the most probable class.

        Parameters
        ----------
        Z : array, sparse matrix or DataFrame of shape (n, n_features), default=None
            Rows of the embedding, as in `predict_proba`; None is the nodes of the fit.

        Returns
        -------
        array of shape (n,)
            A label for each row.
        """
        P = self.predict_proba(Z)
        return self.classes_[np.argmax(P, axis=1)]

    def _proba(self, Z: Any) -> np.ndarray:
        n_nodes = len(self._node_proba)
        if self._head.head in TRANSDUCTIVE and Z.shape[0] != n_nodes:
            raise InputError(
                parameter="Z",
                value=Z.shape[0],
                expected=f"have the {n_nodes} rows of the fit, as the head {self._head.head!r} needs all nodes",
                got=f"{Z.shape[0]} rows",
                advice="call predict() and take the rows you want, or fit with heads='inductive'",
            )
        with one_blas_thread():
            return at_temperature(self._head.model.proba(Z), self.temperature_)


def _names(heads: Any, problem: Problem) -> tuple[str, ...]:
    """The heads to try, in the order of `HEADS`."""
    if heads == "auto" or heads == "inductive":
        left_out = TRANSDUCTIVE if heads == "inductive" else ()
        return tuple(name for name in suitable(problem) if name not in left_out)
    if isinstance(heads, str) or not hasattr(heads, "__iter__"):
        expected = "be 'auto', 'inductive' or a tuple of names of heads"
        raise InputError(parameter="heads", value=heads, expected=expected, advice=f"the names are {', '.join(HEADS)}")
    asked = list(heads)
    for name in asked:
        look_up(HEADS, name, "a head")
    needing = [name for name in asked if name in NEED_GRAPH]
    if needing and problem.S is None:
        got, advice = f"{needing[0]!r} without a graph", "pass GraphProbe(graph, …)"
        raise InputError(parameter="heads", expected="need no graph if there is none", got=got, advice=advice)
    return tuple(name for name in HEADS if name == "logistic" or name in asked)


def _operator(graph: GraphLike, n_rows: int) -> Any:
    """The smoothing operator of a graph that has one node per row."""
    read = as_graph(graph, n_nodes=n_rows) if lists_edges(graph) else as_graph(graph)
    if read.n_nodes != n_rows:
        raise InputError(
            parameter="Z",
            value=n_rows,
            expected="have one row per node of the graph",
            got=f"{n_rows} rows and {read.n_nodes} nodes",
            advice="pass the embedding of all nodes, in the graph's order",
        )
    return symmetric_operator(read)


def _codes_of(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The class number of each label; −1 if there is no such class."""
    places = {label: k for k, label in enumerate(classes.tolist())}
    return np.array([places.get(label, -1) for label in labels.tolist()], dtype=np.intp)


def _record(tried: Tried, scores: Scores, seconds: float) -> dict[str, Any]:
    """A record of the report."""
    values = {"val_accuracy": scores.accuracy, "val_log_loss": scores.loss, "seconds": seconds}
    return {"head": tried.head, "options": tried.options, **values}
