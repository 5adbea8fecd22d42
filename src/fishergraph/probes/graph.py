"""`GraphProbe`: the mixture of classifiers that suits an embedding and its graph, chosen on validation rows.

The candidates are in heads.py, the rule that mixes them in mixture.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from fishergraph._arrays import plain_array
from fishergraph._errors import FishergraphWarning, InputError
from fishergraph._parallel import at_most, n_threads, one_blas_thread
from fishergraph._progress import progress_bar
from fishergraph._typing import GraphLike, MatrixLike, RandomState
from fishergraph._validation import check_n_jobs, check_number, check_random_seed, look_up
from fishergraph._warn import each_warning_once, warn
from fishergraph.graph import as_graph, lists_edges
from fishergraph.io.array_file import only
from fishergraph.probes.base import Probe
from fishergraph.probes.blocks import Blocks, blocks_of, read_blocks
from fishergraph.probes.calibrate import expected_calibration_error
from fishergraph.probes.heads import HEADS, NEED_GRAPH, SMOOTH, Tried, suitable
from fishergraph.probes.mixture import Blend, blend
from fishergraph.probes.models import Mixture
from fishergraph.probes.probe_file import pack_mixture, unpack_mixture
from fishergraph.probes.problem import Problem
from fishergraph.probes.smooth import smoothed, symmetric_operator
from fishergraph.probes.validation import FIT_ON, encode, take, validate_embedding

_MIX = 5  # the purpose of a random stream; smaller ones belong to the heads
_STRENGTHS = [{"correct": correct, "smooth": share} for correct in (None, 0.8) for share in (0.5, 0.8)]


class GraphProbe(Probe):
    """Classifier of nodes that mixes heads by their validation loss.

    It fits many candidates, calibrates each by a temperature, and mixes their probabilities so that the log-loss on
    the validation rows is small (greedy ensemble selection). The mixture is never less accurate on the validation rows
    than plain logistic regression, and is calibrated there by one temperature. The heads are

    - "logistic": plain logistic regression, which is `LogisticProbe` with a tolerance of 1e-3;
    - "blocks": logistic regression on blocks of the columns: all alike, each alone, one raised or left out, some added
      one by one, fully or a little;
    - "sharpen": regression on the principal axes, scaled by their variances, with unit rows;
    - "self-training": the same, and four rounds in which it learns from its own smoothed predictions on all nodes;
    - "mlp": a network with one hidden layer, on all columns and on blocks of equal size;
    - "smooth": Correct & Smooth, which spreads errors and labels over the graph, after the mixture of the others;
    - "lightgbm" and "tabicl": models of the packages of these names, tried only if they are named.

    All but "smooth" can predict rows of other nodes. A model file holds all but "lightgbm" and "tabicl".

    Parameters
    ----------
    graph : graph, default=None
        The graph of the rows, as `as_graph` takes it. Without it "self-training" and "smooth" are left out.
    blocks : sequence or mapping, default=None
        The blocks of the columns: the `blocks_` of the embedding or its `get_feature_names_out()`; also widths, slices,
        or a mapping of names to widths. None reads the column names of a DataFrame, and finds the blocks of an array
        in its numbers: those of `FisherEmbedding` are "block0", "block1", …, any other array is one block.
    heads : {'auto', 'inductive'} or tuple of str, default='auto'
        The heads to try; "logistic" is always tried. "auto" tries those that suit the number of labels, "inductive"
        those of them that can predict other nodes.
    fit_on : {'train', 'train+val'}, default='train'
        Keep the models of the training rows, or fit them once more on training and validation rows, with the same
        settings and weights.
    random_state : int or RandomState, default=None
        Seed of the mixture, of the network, and of the samples of nodes on large graphs.
    n_jobs : int, default=None
        Threads; None uses every core. The result has the same bits at any number.
    verbose : bool or callable, default=False
        Show a progress bar. A callable is used as in `FisherEmbedding`.

    Attributes
    ----------
    chosen_ : dict
        The weight of each head in the mixture, largest first.
    report_ : list of dict
        What was tried: head, options, weight, accuracy and calibrated log-loss on the validation rows. Those of
        "smooth" have no accuracy and loss of their own.
    val_score_ : float
        The accuracy of the mixture on the validation rows, before a fit on all rows.
    val_ece_ : float
        The expected calibration error of its probabilities there.
    seconds_ : dict
        The seconds that each head took.
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
    >>> probe.predict().shape
    (2708,)
    """

    def __init__(
        self,
        graph: GraphLike = None,
        *,
        blocks: Sequence[Any] | Mapping[str, int] | None = None,
        heads: str | Sequence[str] = "auto",
        fit_on: str = "train",
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: Any = False,
    ):
        self.graph = graph
        self.blocks = blocks
        self.heads = heads
        self.fit_on = fit_on
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @each_warning_once()
    def fit(self, Z: MatrixLike, y: ArrayLike, train: ArrayLike, val: ArrayLike) -> Self:
        """Fit the heads, and mix them so that they are good on validation rows.

        Self-training and smoothing also use rows without labels, so Z holds all nodes of the graph.

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
        rows = validate_embedding(Z)
        if rows.shape[1] == 0:
            raise InputError(parameter="Z", expected="have at least one column", got="none")
        self.blocks_: Blocks = blocks_of(self.blocks, Z, rows)
        return super().fit(Z, y, train, val)

    def _fit(self, Z: Any, y: np.ndarray, train: np.ndarray, val: np.ndarray) -> None:
        refit, problem = look_up(FIT_ON, self.fit_on, "fit_on"), self._problem(Z, y, train, val)
        names = _names(self.heads, problem)
        with one_blas_thread(), at_most(n_threads(check_n_jobs(self.n_jobs))):
            tried = self._try(problem, [name for name in names if name != SMOOTH])
            mixed = blend([one.val_proba for one in tried], problem.val_codes, problem.rng(_MIX))
            used = [tried[k] for k in mixed.used]
            mixture = Mixture([one.model for one in used], mixed.of_used())
            P, smoothing = mixture.proba(Z, problem.known_rows()), None
            if SMOOTH in names:
                versions = _versions(problem, P)
                smoothing = blend([Q[val] for Q in versions], problem.val_codes)
                P = smoothing.proba(versions)
            self.val_score_ = mixed.accuracy if smoothing is None else smoothing.accuracy
            self.val_ece_ = expected_calibration_error(P[val], problem.val_codes)
            if refit:
                problem = problem.with_validation()
                mixture = Mixture([one.fit(problem) for one in used], mixed.of_used())
                P = mixture.proba(Z, problem.known_rows())
                P = P if smoothing is None else smoothing.proba(_versions(problem, P))
        self._mixture, self._node_proba, self._marks = mixture, P, _marks(Z)
        self.report_ = _report(problem, tried, mixed, smoothing)
        self.chosen_ = _by_head(self.report_)

    def _problem(self, Z: Any, y: np.ndarray, train: np.ndarray, val: np.ndarray) -> Problem:
        """The problem of all heads; sets `classes_`."""
        self.classes_, codes = encode(y[train])
        seed = int(check_random_state(check_random_seed(self.random_state)).randint(2**31 - 1))
        S = None if self.graph is None else _operator(self.graph, Z.shape[0])
        val_codes = _codes_of(y[val], self.classes_)
        absent = [label for k, label in enumerate(self.classes_.tolist()) if k not in val_codes]
        if absent:
            text = f"no validation row has the class {absent[0]!r}, so heads are weighed without it"
            warn("validation", f"{text}; add such rows to val if you have them.", FishergraphWarning)
        return Problem(Z, codes, val_codes, train, val, len(self.classes_), self.blocks_, S, seed)

    def _try(self, problem: Problem, names: Sequence[str]) -> list[Tried]:
        """The candidates of the heads; sets `seconds_`."""
        tried: list[Tried] = []
        self.seconds_: dict[str, float] = {}
        with progress_bar(self.verbose, unit="head")("fitting heads", len(names)) as bar:
            for name in names:
                start = perf_counter()
                tried += HEADS[name](problem, tuple(tried))
                self.seconds_[name] = perf_counter() - start
                bar.set_postfix(loss=min(one.loss for one in tried))
                bar.update(1)
        return tried

    def predict_proba(self, Z: MatrixLike = None, *, rows: ArrayLike | None = None) -> np.ndarray:
        """Predict calibrated class probabilities.

        Parameters
        ----------
        Z : array, sparse matrix or DataFrame of shape (n, n_features), default=None
            Rows of the embedding. None, and the embedding of the fit, are the nodes of the fit. "smooth" has no part in
            the probabilities of other rows.
        rows : array of int, optional
            The numbers of these rows in the embedding of the fit, if Z is some of its rows.

        Returns
        -------
        array of shape (n, n_classes)
            Probabilities in the order of `classes_`; rows sum to one.
        """
        check_is_fitted(self)
        if rows is not None:
            return self._part_proba(Z, rows)
        return self._node_proba.copy() if Z is None else super().predict_proba(Z)

    def _part_proba(self, Z: MatrixLike, rows: ArrayLike) -> np.ndarray:
        """The probabilities of some rows: those of the fit, unless Z has other values there."""
        numbers, n_rows = plain_array(rows, "rows"), len(self._marks)
        inside = numbers.ndim == 1 and numbers.dtype.kind in "iu" and not ((numbers < 0) | (numbers >= n_rows)).any()
        if not inside or (Z is not None and len(cast(Any, Z)) != len(numbers)):
            expected = f"be a number of 0 to {n_rows - 1} for each row of Z"
            raise InputError(parameter="rows", value=rows, expected=expected)
        if Z is None:
            return self._node_proba[numbers]
        Z = self._checked(Z)
        if _same(_marks(Z), self._marks[numbers]):
            return self._node_proba[numbers]
        return super().predict_proba(Z)

    def predict(self, Z: MatrixLike = None) -> np.ndarray:
        """Predict the most probable class.

        Parameters
        ----------
        Z : array, sparse matrix or DataFrame of shape (n, n_features), default=None
            Rows of the embedding, as in `predict_proba`.

        Returns
        -------
        array of shape (n,)
            A label for each row.
        """
        P = self.predict_proba(Z)
        return self.classes_[np.argmax(P, axis=1)]

    def _proba(self, Z: Any) -> np.ndarray:
        with one_blas_thread():
            return self._node_proba.copy() if _same(_marks(Z), self._marks) else self._mixture.proba(Z)

    def _pack(self, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
        entry = {"mixture": pack_mixture(self._mixture, arrays), "val_ece": self.val_ece_}
        arrays |= {"nodes": self._node_proba, "marks": self._marks}
        blocks = [[name, part.stop - part.start] for name, part in self.blocks_]
        return {**entry, "blocks": blocks, "report": self.report_, "seconds": self.seconds_}

    def _unpack(self, entry: Mapping[str, Any], arrays: dict[str, np.ndarray]) -> None:
        fields = only(entry, ("mixture", "val_ece", "blocks", "report", "seconds"))
        n_columns, n_classes = self.n_features_in_, len(self.classes_)
        self.blocks = tuple((name, width) for name, width in fields["blocks"])
        self.blocks_ = read_blocks(self.blocks, None, n_columns)
        self._mixture = unpack_mixture(fields["mixture"], arrays, n_columns, n_classes)
        self._marks = arrays.pop("marks")
        self._node_proba = take(arrays, "nodes", (*self._marks.shape, n_classes))
        if self._node_proba.ndim != 2 or np.abs(self._node_proba.sum(axis=1) - 1).max(initial=0) > 1e-6:
            raise ValueError("nodes must hold probabilities that sum to one.")
        self.val_ece_ = check_number(fields["val_ece"], "val_ece", most=1.0)
        self.report_ = [dict(record) for record in fields["report"]]
        self.seconds_ = {head: check_number(seconds, "seconds") for head, seconds in fields["seconds"].items()}
        self.chosen_ = _by_head(self.report_)


def _marks(Z: Any) -> np.ndarray:
    """A number for every row, by which the rows of the fit are recognised, (row,)."""
    directions = np.random.default_rng(0).standard_normal(Z.shape[1]) / np.sqrt(Z.shape[1])
    return np.asarray(Z @ directions.astype(Z.dtype), dtype=np.float64).ravel()


def _same(marks: np.ndarray, others: np.ndarray) -> bool:
    """Whether marks are equal up to rounding."""
    return marks.shape == others.shape and bool(np.abs(marks - others).max() <= 1e-4 * np.abs(others).max())


def _versions(problem: Problem, P: np.ndarray) -> list[np.ndarray]:
    """The probabilities of all nodes, as they are and after Correct & Smooth in several strengths."""
    assert problem.S is not None
    return [P, *(smoothed(problem.S, P, problem.targets, problem.train, **strength) for strength in _STRENGTHS)]


def _report(problem: Problem, tried: list[Tried], mixed: Blend, smoothing: Blend | None) -> list[dict[str, Any]]:
    """A record of every candidate. If the mixture was smoothed, its candidates share the weight it has unsmoothed."""
    accuracies = [float(np.mean(one.val_proba.argmax(axis=1) == problem.val_codes)) for one in tried]
    share = 1.0 if smoothing is None else float(smoothing.weights[0])
    records: list[dict[str, Any]] = [
        {"head": one.head, "options": one.options, "weight": share * float(weight), "val_accuracy": accuracy}
        | {"val_log_loss": one.loss}
        for one, weight, accuracy in zip(tried, mixed.weights, accuracies, strict=True)
    ]
    weights = [] if smoothing is None else smoothing.weights[1:].tolist()
    return records + [
        {"head": SMOOTH, "options": strength, "weight": weight}
        for strength, weight in zip(_STRENGTHS, weights, strict=False)
    ]


def _by_head(records: list[dict[str, Any]]) -> dict[str, float]:
    """The weight of each head that has some, largest first."""
    total: dict[str, float] = {}
    for record in records:
        total[record["head"]] = total.get(record["head"], 0.0) + record["weight"]
    return {head: weight for head, weight in sorted(total.items(), key=lambda entry: -entry[1]) if weight > 0}


def read_heads(heads: Any, *, graph: bool) -> str | list[str]:
    """The heads that are asked for, "auto", "inductive" or names, validated for a graph or for none."""
    if isinstance(heads, str) and heads in ("auto", "inductive"):
        return heads
    known = {**HEADS, SMOOTH: None}
    if isinstance(heads, str) or not hasattr(heads, "__iter__") or getattr(heads, "ndim", 1) == 0:
        expected = "be 'auto', 'inductive' or a tuple of names of heads"
        raise InputError(parameter="heads", value=heads, expected=expected, advice=f"the names are {', '.join(known)}")
    asked = list(heads)
    for name in asked:
        look_up(known, name, "a head")
    needing = [name for name in asked if name in NEED_GRAPH]
    if needing and not graph:
        got, advice = f"{needing[0]!r} without a graph", "pass GraphProbe(graph, …)"
        raise InputError(parameter="heads", expected="need no graph if there is none", got=got, advice=advice)
    return asked


def _names(heads: Any, problem: Problem) -> tuple[str, ...]:
    """The heads to try, in order."""
    asked = read_heads(heads, graph=problem.S is not None)
    if isinstance(asked, str):
        return tuple(name for name in suitable(problem) if asked == "auto" or name != SMOOTH)
    return tuple(name for name in (*HEADS, SMOOTH) if name == "logistic" or name in asked)


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
