"""`FisherClassifier`: the network trained on the labelled nodes of a graph, as a scikit-learn classifier."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from fishergraph import _arrays, _validation
from fishergraph._alignment import check_row_order
from fishergraph._progress import costing, progress_bar
from fishergraph._repr import short_params
from fishergraph._warn import each_warning_once
from fishergraph.costs import network_learning
from fishergraph.estimators.base import all_or_nothing
from fishergraph.estimators.door import host_door
from fishergraph.estimators.model_file import (
    load_model,
)
from fishergraph.family import FAMILIES
from fishergraph.multiset import WEIGHTS, Rule, choose_multiset
from fishergraph.nn.classifier_file import restore_classifier, save_classifier
from fishergraph.nn.history import History
from fishergraph.nn.labels import UNLABELLED, check_split, given_rows, hold_out, read_labels
from fishergraph.nn.lifted import check_whole, n_outputs
from fishergraph.nn.models import FisherNet
from fishergraph.nn.rows import as_tensor
from fishergraph.nn.training import MOST_EPOCHS, own_randomness, train
from fishergraph.ops.tensor_edges import tensor_sets
from fishergraph.ops.torch_device import find_device, to_numpy
from fishergraph.ops.torch_threads import bounded
from fishergraph.structural import describe_structure

_IN_ORDER = "y.reindex(X.index), or y.reindex(as_graph(graph).ids) if X is no DataFrame"
_INITS = {"data": True, "random": False}


class FisherClassifier(ClassifierMixin, BaseEstimator):
    """Classify the nodes of a graph, from the labels of some of them, by Fisher layers trained end to end.

    The network is `FisherNet`: an input map, layers of Fisher embeddings of every node's multiset, and a linear
    classifier on all of them (Eq. 2). Its anchors start where k-means puts them without labels, as in Section 4.5 of
    the paper, and are trained with everything else by Adam, until the validation accuracy rises no more.

    Parameters
    ----------
    n_layers, n_anchors, dim, n_em_iter : layers, components of a mixture, width of a layer, EM iterations.
    e_step, column_penalty, variance, prior, normalize : as in `FisherEmbedding`.
    family : "gaussian-mixture", "diagonal-mixture", "von-mises-fisher", "gaussian" or "multinomial", as in `FisherConv`
        and `FisherNet`: with the last one the first layer sees the counts in X.
    head : what makes a layer's output of φ: "nystrom", "relu" or "linear".
    jk : "cat", the classifier sees all layers, or "last".
    dropout, input_dropout : of the rows that enter a layer or the classifier, and of X itself.
    heads : mixtures side by side in a layer.
    multiset, weights, undirected, structure : as in `FisherEmbedding`.
    init : "data", anchors and landmarks by k-means; or "random".
    lr, weight_decay, max_epochs, patience, schedule, amp : as in `fishergraph.nn.train`.
    validation_fraction : the share of the labelled rows of each class that is held out where `fit` is given no `val`; 0
        holds none out, and runs all epochs.
    batch_size, fan_out : rows to train on in a step, and neighbours sampled at each distance (a number, or one per
        layer); None takes the whole graph at once, as pairs, paths and tuples must. Predictions always see all
        neighbours.
    device : "cpu", "cuda" or "cuda:1". On the CPU the type of X is kept, on a card the network is in float32.
    random_state : seed.
    n_jobs : threads, any number with the same result, as in `fishergraph.nn.train`; None uses every core.
    verbose : show a progress bar.

    Attributes
    ----------
    classes_ : the labels, in order.
    net_ : the trained `FisherNet`.
    history_ : a row per epoch, `fishergraph.plots.training_curves` draws it; n_iter_ is their number.
    n_features_in_, feature_names_in_ : as in scikit-learn.

    Examples
    --------
    >>> from fishergraph import FisherClassifier
    >>> from fishergraph.datasets import load_graph
    >>> cora = load_graph("cora")
    >>> y = cora.y.copy()
    >>> y[cora.test] = -1  # unlabelled
    >>> model = FisherClassifier(random_state=0).fit(cora.X, y, graph=cora.graph, val=cora.val)
    >>> model.predict(cora.X, graph=cora.graph)[cora.test]
    """

    def __init__(
        self,
        n_layers: int = 2,
        n_anchors: int = 4,
        dim: int = 64,
        *,
        n_em_iter: int = 1,
        e_step: str = "posterior",
        column_penalty: float = 1.0,
        family: str = "gaussian-mixture",
        variance: float | str = "auto",
        prior: float = 0.0,
        normalize: bool = True,
        head: str = "nystrom",
        jk: str = "cat",
        dropout: float = 0.5,
        input_dropout: float = 0.0,
        heads: int = 1,
        multiset: str | Rule = "neighbourhood",
        weights: str | None = None,
        undirected: bool = False,
        structure: str = "projection",
        init: str = "data",
        lr: float = 0.001,
        weight_decay: float = 5e-4,
        max_epochs: int = 500,
        patience: int | None = 100,
        schedule: str | None = None,
        validation_fraction: float = 0.1,
        batch_size: int | None = None,
        fan_out: Any = None,
        amp: bool | str = False,
        device: str = "cpu",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: Any = False,
    ):
        self.n_layers = n_layers
        self.n_anchors = n_anchors
        self.dim = dim
        self.n_em_iter = n_em_iter
        self.e_step = e_step
        self.column_penalty = column_penalty
        self.family = family
        self.variance = variance
        self.prior = prior
        self.normalize = normalize
        self.head = head
        self.jk = jk
        self.dropout = dropout
        self.input_dropout = input_dropout
        self.heads = heads
        self.multiset = multiset
        self.weights = weights
        self.undirected = undirected
        self.structure = structure
        self.init = init
        self.lr = lr
        self.weight_decay = weight_decay
        self.max_epochs = max_epochs
        self.patience = patience
        self.schedule = schedule
        self.validation_fraction = validation_fraction
        self.batch_size = batch_size
        self.fan_out = fan_out
        self.amp = amp
        self.device = device
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    __repr__ = short_params

    @all_or_nothing
    @bounded
    def fit(
        self,
        X: Any = None,
        y: Any = None,
        *,
        graph: Any = None,
        val: Any = None,
        checkpoint: str | Path | None = None,
        resume: bool = False,
        log: str | Path | None = None,
    ) -> FisherClassifier:
        """Train on the labelled rows; rows without a label (−1, None, NaN or '') belong to the graph all the same.

        X is dense or CSR, (node, feature), or None for structural features of the graph. `graph` is anything that
        `as_graph` takes; None makes every row its own multiset. A Series y must be in the order of the rows. `val` is a
        mask, or the numbers, of labelled rows that decide when to stop. `checkpoint`, `resume` and `log` are those of
        `fishergraph.nn.train`.
        """
        self._check_params()
        words = check_random_state(_validation.check_random_seed(self.random_state)).randint(0, 2**31 - 1, size=3)
        self.structure_seed_, seed, split_seed = (int(word) for word in words)
        x, sets, ids = self._open(X, graph, fitting=True)
        check_row_order(y, ids, _IN_ORDER)
        n_nodes, slots = n_outputs(sets), sets.slots if sets.lifted else None
        self.classes_, codes = read_labels(y, n_nodes)
        held = hold_out(codes, self.validation_fraction, split_seed) if val is None else given_rows(val, n_nodes)
        rows = check_split(self.classes_, codes, held)
        if len(codes) == 1 and self.head == "relu":
            raise ValueError("head='relu' has a batch norm, which needs two rows, got n_samples=1; use 'linear'.")
        device = find_device(self.device)
        with own_randomness(device, seed):
            net = self._network(x.shape[1], len(self.classes_), slots).to(device, x.dtype)
            if _validation.look_up(_INITS, self.init, "init"):
                cost = network_learning(x.shape, self.dim, self.n_layers, self.n_anchors)
                with costing(progress_bar(self.verbose), "learning", cost):
                    net.init_from_data(x.to(device), sets.to(device), seed=seed)
        self.history_: History = train(
            net, x, codes, sets, train=rows, val=held, epochs=self.max_epochs, lr=self.lr, patience=self.patience,
            weight_decay=self.weight_decay, schedule=self.schedule, batch_size=self.batch_size,
            num_neighbors=self.fan_out, amp=self.amp, device=self.device, seed=seed, n_jobs=self.n_jobs,
            checkpoint=checkpoint, resume=resume, log=log, progress=self.verbose,
        )  # fmt: skip
        self.net_, self.n_iter_ = net, len(self.history_)
        return self

    @bounded
    def predict(self, X: Any = None, *, graph: Any = None) -> np.ndarray:
        """The likeliest class of every row: of the same graph, a larger one, or another one."""
        logits, _ = self._logits(X, graph)
        return self.classes_[to_numpy(logits.argmax(1))]

    @bounded
    def predict_proba(self, X: Any = None, *, graph: Any = None) -> np.ndarray:
        """The probabilities of the classes, (row, class), in the order of `classes_`."""
        logits, _ = self._logits(X, graph)
        return to_numpy(torch.softmax(logits, dim=1))

    def score(self, X: Any = None, y: Any = None, sample_weight: Any = None, *, graph: Any = None) -> float:
        """The share of the rows with a label in y that are classified as it says."""
        logits, ids = self._logits(X, graph)
        check_row_order(y, ids, _IN_ORDER)
        predicted = self.classes_[to_numpy(logits.argmax(1))]
        classes, codes = read_labels(y, len(predicted), self.classes_)
        rows = np.flatnonzero(codes != UNLABELLED)
        weight = None if sample_weight is None else np.asarray(sample_weight)[rows]
        return float(accuracy_score(classes[codes[rows]], predicted[rows], sample_weight=weight))

    @each_warning_once()
    def _logits(self, X: Any, graph: Any) -> tuple[Tensor, Any]:
        """The logits, (row, class), and the ids of the rows."""
        check_is_fitted(self)
        x, sets, ids = self._open(X, graph, fitting=False)
        device, first = find_device(self.device), next(self.net_.parameters())
        logits = self.net_.to(device).inference(x.to(first.dtype), sets, device=device)
        if not bool(torch.isfinite(logits).all()):
            raise ValueError(
                "the network must give finite numbers, got others, as weights or features of huge size do; rescale X, "
                "fit again, or get the model file again."
            )
        return logits, ids

    def _open(self, X: Any, graph: Any, *, fitting: bool) -> tuple[Tensor, Any, Any]:
        """(x, sets) as tensors in host memory, and the ids of the rows."""
        X, sets, ids = host_door(self, X, graph, fitting=fitting)
        if sp.issparse(X) and self.batch_size is not None:
            _arrays.check_dense(X)
            X = X.toarray()  # batches are cut from dense rows
        dtype = np.float32 if self.device != "cpu" else X.dtype
        return as_tensor(X.astype(dtype, copy=False)), tensor_sets(sets), ids

    def _network(self, n_features: int, n_classes: int, slots: int | None) -> FisherNet:
        """The network; its multisets come with their loops and weights."""
        return FisherNet(
            n_features, self.dim, self.n_layers, n_classes, num_anchors=self.n_anchors, num_em_steps=self.n_em_iter,
            head=self.head, jk=self.jk, dropout=self.dropout, normalize=self.normalize, heads=self.heads,
            variance=self.variance, prior=self.prior, e_step=self.e_step, column_penalty=self.column_penalty,
            family=self.family, add_self_loops=False, slots=slots, input_dropout=self.input_dropout,
        )  # fmt: skip

    def _check_params(self) -> None:
        """Raise for a parameter that the network and the training would know under another name."""
        _validation.check_device(self.device, "float32")
        choose_multiset(self.multiset)
        check_whole(self.multiset, self.batch_size)
        _validation.look_up(WEIGHTS, "edge" if self.weights is None else self.weights, "weights")
        _validation.look_up(_INITS, self.init, "init")
        _validation.look_up(FAMILIES, self.family, "family")
        _validation.check_flag(self.undirected, "undirected")
        describe_structure(self.structure)
        for name, least in (("n_layers", 0), ("n_anchors", 1), ("dim", 1), ("n_em_iter", 0), ("max_epochs", 1)):
            bounds = {
                "n_layers": _validation.MOST_LAYERS,
                "n_em_iter": _validation.MOST_ITERATIONS,
                "max_epochs": MOST_EPOCHS,
            }
            most = bounds.get(name, _validation.MOST_COLUMNS)
            _validation.check_integer(getattr(self, name), name, least=least, most=most)
        _validation.check_number(self.validation_fraction, "validation_fraction", most=0.9)

    def save(self, path: str | Path) -> None:
        """Write the trained model to one safetensors file (arrays, and parameters as JSON in its header)."""
        check_is_fitted(self)
        save_classifier(self, path)

    @classmethod
    def load(cls, path: str | Path, *, device: str | None = None) -> FisherClassifier:
        """The model that `save` wrote; `device` takes the place of the one it was trained on."""
        model = load_model(cls, path, restore_classifier)
        return model if device is None else model.set_params(device=device)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = self.family == "multinomial"
        return tags
