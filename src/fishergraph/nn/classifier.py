"""`FisherClassifier`: the network trained on the labelled nodes of a graph, as a scikit-learn classifier."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from fishergraph import _arrays, _validation
from fishergraph._errors import InputError
from fishergraph._progress import costing, progress_bar
from fishergraph._records import check_row_order
from fishergraph._warn import each_warning_once
from fishergraph.costs import network_learning
from fishergraph.device import Device, choose_device
from fishergraph.em.settings import EM, choose_em
from fishergraph.estimators.arguments import features_and_graph
from fishergraph.estimators.base import FisherEstimator, all_or_nothing, check_same
from fishergraph.estimators.inputs import InputSettings, StructureReader, check_same_source, read_host
from fishergraph.estimators.state import ModelState
from fishergraph.family import Family, choose_family
from fishergraph.multiset import Rule, choose_multiset
from fishergraph.nn.classifier_file import read_classes, read_network
from fishergraph.nn.history import History, read_history
from fishergraph.nn.labels import hold_out, read_labels, read_weights
from fishergraph.nn.lifted import n_outputs
from fishergraph.nn.models import FisherNet
from fishergraph.nn.rows import as_tensor, node_numbers
from fishergraph.nn.settings import Network, Training, choose_network, choose_training
from fishergraph.nn.task import UNLABELLED, check_split
from fishergraph.nn.training import own_randomness, train
from fishergraph.ops.tensor_edges import tensor_sets
from fishergraph.ops.torch_device import find_device, to_numpy
from fishergraph.ops.torch_threads import bounded
from fishergraph.structural import Structure, choose_structure

_IN_ORDER = "y.reindex(X.index), or y.reindex(as_graph(graph).ids) if X is not a DataFrame"
# The arguments of the network that come from a parameter of another name.
_PARAMETERS = {
    "hidden_channels": "dim",
    "num_layers": "n_layers",
    "num_anchors": "n_anchors",
    **dict.fromkeys(("head", "heads", "jk", "dropout", "input_dropout"), "network"),
}


class FisherClassifier(ClassifierMixin, FisherEstimator):
    """Classify the nodes of a graph by Fisher layers that are trained end to end.

    The network is `FisherNet`: an input map, layers of Fisher embeddings of every node's multiset, and a linear
    classifier on all of them (Eq. 2). Its anchors start where k-means finds them without labels, as in Section 4.5 of
    the paper, and are trained with everything else by Adam, until the validation accuracy stops rising.

    Parameters
    ----------
    n_layers : int, default=2
        Number of layers.
    n_anchors : int, default=4
        Number of mixture components of a layer.
    dim : int, default=64
        Width of a layer.
    multiset : str or component, default="neighbourhood"
        The multiset of a node, with edge weights and directions, as in `FisherEmbedding`.
    family : str or component, default="gaussian-mixture"
        The manifold, as in `FisherConv`. The first layer of a `MultinomialMixture` reads the counts in X.
    em : EM, optional
        E-step, iterations, prior, and how the first anchors are learned. None is ``EM()``.
    structure : str, Structure or None, default="auto"
        The features of a graph without any (``X=None``).
    normalize : bool, default=True
        Divide the rows of X, and the points of every layer, by their lengths.
    network : Network, optional
        Heads, dropout and start of the network. None is ``Network()``.
    training : Training, optional
        Learning rate, epochs, early stopping and mini-batches. None is ``Training()``.
    device : str or Device, default="cpu"
        "cpu", "cuda" or "cuda:1". On the CPU the dtype of X is kept, on a GPU the network is in float32.
    random_state : int, RandomState or None, default=None
        Seed.
    n_jobs : int, optional
        Threads, with the same result at any number, as in `fishergraph.nn.train`; None uses every core.
    verbose : bool or callable, default=False
        Show a progress bar.

    Attributes
    ----------
    classes_ : ndarray
        The labels, in order.
    net_ : FisherNet
        The trained network.
    history_ : History
        A row per epoch; `fishergraph.plots.training_curves` draws it.
    n_iter_ : int
        Number of epochs.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Names of the columns of X, if it had any.

    See Also
    --------
    FisherEmbedding : The same layers without labels.
    fishergraph.nn.FisherNet : The network as a torch module.

    Examples
    --------
    >>> from fishergraph import FisherClassifier
    >>> from fishergraph.datasets import load_graph
    >>> from fishergraph.nn import Training
    >>> cora = load_graph("cora")
    >>> y = cora.y.copy()
    >>> y[cora.test] = -1  # unlabelled
    >>> model = FisherClassifier(dim=16, training=Training(max_epochs=2), random_state=0)
    >>> model.fit(cora.X, y, graph=cora.graph, val=cora.val).predict(cora.X, graph=cora.graph).shape
    (2708,)
    """

    n_features_in_: int
    _remembered: ClassVar[tuple[str, ...]] = ("n_features_in_", "structural_", "needs_graph_")
    _chosen: ClassVar[dict[str, Any]] = {
        "multiset": choose_multiset,
        "family": choose_family,
        "em": choose_em,
        "network": choose_network,
        "training": choose_training,
        "device": choose_device,
    }

    def __init__(
        self,
        n_layers: int = 2,
        n_anchors: int = 4,
        dim: int = 64,
        *,
        multiset: str | Rule = "neighbourhood",
        family: str | Family = "gaussian-mixture",
        em: EM | None = None,
        structure: str | Structure | None = "auto",
        normalize: bool = True,
        network: Network | None = None,
        training: Training | None = None,
        device: str | Device = "cpu",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: Any = False,
    ):
        self.n_layers = n_layers
        self.n_anchors = n_anchors
        self.dim = dim
        self.multiset = multiset
        self.family = family
        self.em = em
        self.structure = structure
        self.normalize = normalize
        self.network = network
        self.training = training
        self.device = device
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

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
    ) -> Self:
        """Train on the labelled rows; the others belong to the graph all the same.

        Parameters
        ----------
        X : matrix of shape (n_nodes, n_features), or None
            Features, dense or CSR; None uses structural features of the graph.
        y : array of shape (n_nodes,)
            Labels; −1, None, NaN and '' mark rows without one. A Series must be in the order of the rows.
        graph : graph, optional
            Anything that `as_graph` takes; None makes every row its own multiset.
        val : mask or row numbers, optional
            Labelled rows that decide when to stop.
        checkpoint, resume, log : path, bool, path
            See `fishergraph.nn.train`.

        Returns
        -------
        FisherClassifier
            The fitted model.
        """
        self.check()
        words = check_random_state(_validation.check_random_seed(self.random_state)).randint(0, 2**31 - 1, size=3)
        structure_seed, seed, split_seed = (int(word) for word in words)
        self.structure_ = None
        x, sets, ids = self._read(X, graph, fitting=True, seed=structure_seed)
        check_row_order(y, ids, _IN_ORDER)
        network, training, n_nodes = choose_network(self.network), choose_training(self.training), n_outputs(sets)
        self.classes_, codes = read_labels(y, n_nodes)
        if val is None:
            held = hold_out(codes, training.validation_fraction, split_seed)
        else:
            held = node_numbers(val, n_nodes, "val").unique().numpy()
        rows = np.setdiff1d(np.flatnonzero(codes != UNLABELLED), held)
        check_split(*map(torch.from_numpy, (codes, rows, held)), names=self.classes_.tolist())
        if len(codes) == 1 and network.head == "relu":
            raise InputError("head='relu' has a batch norm, which needs two rows, got n_samples=1; use 'linear'.")
        device = find_device(choose_device(self.device).name)
        with own_randomness(device, seed):
            net = FisherNet(**self._config(x.shape[1], len(self.classes_))).to(device, x.dtype)
            if network.learns_start:
                cost = network_learning(x.shape, self.dim, self.n_layers, self.n_anchors)
                with costing(progress_bar(self.verbose), "learning", cost):
                    net.init_from_data(x.to(device), sets.to(device), seed=seed)
        options = training.get_params()
        del options["validation_fraction"]
        options |= {"epochs": options.pop("max_epochs"), "num_neighbors": options.pop("fan_out")}
        options |= {"device": device, "seed": seed, "n_jobs": self.n_jobs, "progress": self.verbose}
        options |= {"checkpoint": checkpoint, "resume": resume, "log": log}
        self.history_: History = train(net, x, codes, sets, train=rows, val=held, **options)
        self.net_, self.n_iter_ = net, len(self.history_)
        return self

    @bounded
    def predict(self, X: Any = None, *, graph: Any = None) -> np.ndarray:
        """Return the most likely class of every row.

        Parameters
        ----------
        X, graph : matrix and graph
            See `fit`. The same graph, a larger one, or another one.

        Returns
        -------
        ndarray of shape (n_nodes,)
            One class per row.
        """
        logits, _ = self._logits(X, graph)
        return self.classes_[to_numpy(logits.argmax(1))]

    @bounded
    def predict_proba(self, X: Any = None, *, graph: Any = None) -> np.ndarray:
        """Return the probabilities of the classes.

        Parameters
        ----------
        X, graph : matrix and graph
            See `fit`.

        Returns
        -------
        ndarray of shape (n_nodes, n_classes)
            Columns in the order of `classes_`.
        """
        logits, _ = self._logits(X, graph)
        return to_numpy(torch.softmax(logits, dim=1))

    def score(self, X: Any = None, y: Any = None, sample_weight: Any = None, *, graph: Any = None) -> float:
        """Return the accuracy on the rows that have a label in y.

        Parameters
        ----------
        X, y, sample_weight, graph : matrix, labels, weights, graph
            See `fit`; `sample_weight` has a weight for every row.

        Returns
        -------
        float
            The fraction of correct rows.
        """
        logits, ids = self._logits(X, graph)
        check_row_order(y, ids, _IN_ORDER)
        predicted = self.classes_[to_numpy(logits.argmax(1))]
        classes, codes = read_labels(y, len(predicted), self.classes_)
        rows = np.flatnonzero(codes != UNLABELLED)
        weight = None if sample_weight is None else read_weights(sample_weight, len(predicted))[rows]
        return float(accuracy_score(classes[codes[rows]], predicted[rows], sample_weight=weight))

    @each_warning_once()
    def _logits(self, X: Any, graph: Any) -> tuple[Tensor, Any]:
        """The logits, (row, class), and the ids of the rows."""
        check_is_fitted(self)
        self._check_unchanged()
        x, sets, ids = self._read(X, graph, fitting=False)
        device, first = find_device(choose_device(self.device).name), next(self.net_.parameters())
        logits = self.net_.to(device).inference(x.to(first.dtype), sets, device=device)
        if not bool(torch.isfinite(logits).all()):
            text = "the network returns numbers that are not finite; rescale X, fit again, or get the model file again."
            raise InputError(text, parameter="X")
        return logits, ids

    def _read(self, X: Any, graph: Any, *, fitting: bool, seed: int = 0) -> tuple[Tensor, Any, Any]:
        """X and its multisets as tensors in host memory, and the ids of the rows."""
        X, graph = features_and_graph(X, graph, fitting=fitting)
        if fitting:
            self.structural_, self.needs_graph_ = X is None, graph is not None
        else:
            check_same_source(X, graph, structural=self.structural_, needs_graph=self.needs_graph_)
        progress, device = progress_bar(self.verbose), choose_device(self.device)
        settings = InputSettings(
            rule=choose_multiset(self.multiset),
            family=choose_family(self.family),
            normalize=self.normalize,
            device=device,
            n_jobs=_validation.check_n_jobs(self.n_jobs),
            progress=progress,
            check_columns=lambda X: validate_data(self, X, reset=fitting, skip_check_array=True),
        )
        structure = choose_structure(self.structure) if X is None else None
        reader = StructureReader(structure, self.dim, seed, self.structure_, settings.n_jobs, progress)
        X, sets, ids, _ = read_host(X, graph, settings, reader)
        self.structure_ = reader.fitted
        if sp.issparse(X) and choose_training(self.training).batch_size is not None:
            _arrays.check_dense(X)
            X = X.toarray()  # batches are cut from dense rows
        dtype = X.dtype if device.name == "cpu" else np.float32
        return as_tensor(X.astype(dtype, copy=False)), tensor_sets(sets), ids

    def _config(self, n_features: int, n_classes: int) -> dict[str, Any]:
        """The arguments of the network."""
        network = choose_network(self.network).get_params(deep=False)
        del network["init"]
        return {
            "in_channels": n_features,
            "hidden_channels": self.dim,
            "num_layers": self.n_layers,
            "out_channels": n_classes,
            "num_anchors": self.n_anchors,
            "multiset": choose_multiset(self.multiset),
            "family": choose_family(self.family),
            "em": choose_em(self.em),
            "normalize": self.normalize,
            **network,
        }

    def check(self) -> None:
        """Raise an `InputError` unless every parameter is valid."""
        rule, device = choose_multiset(self.multiset), choose_device(self.device)
        network, training = choose_network(self.network), choose_training(self.training)
        network.check()
        training.check()
        choose_family(self.family)
        choose_em(self.em)
        choose_structure(self.structure)
        _validation.check_integer(self.n_layers, "n_layers", least=0, most=_validation.MOST_LAYERS)
        _validation.check_integer(self.n_anchors, "n_anchors", least=1, most=_validation.MOST_COLUMNS)
        _validation.check_integer(self.dim, "dim", least=1, most=_validation.MOST_COLUMNS)
        _validation.check_flag(self.normalize, "normalize")
        if device.precision != "float32":
            expected = "have precision='float32' for a network"
            raise InputError(parameter="device", value=device, expected=expected, advice="use Training(amp='bf16')")
        if training.batch_size is not None and (rule.lifts or rule.kinds > 1):
            why = "whose members are made of several nodes" if rule.lifts else "which keeps directions apart"
            expected = f"be None with multiset={rule!r}, {why}"
            raise InputError(parameter="batch_size", value=training.batch_size, expected=expected)

    def _check_unchanged(self) -> None:
        """Raise if a parameter of the network was changed after the fit."""
        fitted = self.net_.config()
        asked = self._config(fitted["in_channels"], len(self.classes_))
        for name, value in asked.items():
            parameter = _PARAMETERS.get(name, name)
            check_same({parameter: fitted[name]}, {parameter: value})

    def _state(self) -> dict[str, Any]:
        self._check_unchanged()
        classes = {"classes": self.classes_.tolist(), "classes_dtype": self.classes_.dtype.str}
        return {**classes, "structure": self.structure_, "history": vars(self.history_)}

    def _weights(self) -> dict[str, np.ndarray]:
        return {name: to_numpy(tensor) for name, tensor in self.net_.state_dict().items()}

    def _restore(self, state: ModelState) -> None:
        self.check()
        self.classes_ = read_classes(state.parts.pop("classes"), state.parts.pop("classes_dtype"))
        self.structure_ = state.structure("structure", choose_structure(self.structure))
        n_columns = choose_multiset(self.multiset).n_columns(self.n_features_in_)
        self.net_ = read_network(self._config(n_columns, len(self.classes_)), state.arrays)
        self.history_ = read_history(state.parts.pop("history"))
        self.n_iter_ = len(self.history_)
