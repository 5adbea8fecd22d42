"""`FisherClassifier`: the classes of nodes, by a probe of their embedding or by a trained network."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from fishergraph import _arrays, _validation
from fishergraph._errors import InputError
from fishergraph._progress import Verbose, progress_bar
from fishergraph._records import check_row_order
from fishergraph._typing import GraphLike, MatrixLike, NodesLike, RandomState
from fishergraph._warn import each_warning_once
from fishergraph.device import Device, choose_device
from fishergraph.em.settings import EM, choose_em
from fishergraph.estimators.arguments import features_and_graph
from fishergraph.estimators.asked import n_result_rows, read_nodes_of
from fishergraph.estimators.base import all_or_nothing, check_same
from fishergraph.estimators.inputs import InputSettings, check_same_source, read_graph, read_host
from fishergraph.estimators.labels import hold_out, read_labels, read_rows
from fishergraph.estimators.network_parameters import PARAMETERS, SIZES, check_network, check_sizes
from fishergraph.estimators.network_parameters import component as _settings
from fishergraph.estimators.node import FisherEmbedding
from fishergraph.estimators.node_classifier import IN_ORDER, NodeClassifier, Outputs
from fishergraph.estimators.node_probe import NodeProbe, check_left_out, fit_probe
from fishergraph.estimators.source import Source, check_store
from fishergraph.estimators.state import ModelState, encoder_part
from fishergraph.estimators.structure_input import StructureReader
from fishergraph.family import Family, choose_family
from fishergraph.multiset import Rule, choose_multiset
from fishergraph.probes.validation import read_classes
from fishergraph.structural import Structure, choose_structure

if TYPE_CHECKING:
    from fishergraph.nn import Network, Training

# Attributes that not every fit sets.
_SOMETIMES = ("net_", "history_", "n_iter_", "embedding_", "probe_", "structure_", "feature_names_in_", "encoder_")


class FisherClassifier(NodeClassifier):
    """Classify the nodes of a graph from the labels of some of them.

    The mode "probe" embeds the nodes without labels by `FisherEmbedding`, and fits a `GraphProbe` to the embedding,
    without torch. "network" trains `FisherNet` end to end: an input map, layers of Fisher embeddings of
    every node's multiset, and a linear classifier on all of them (Eq. 2). Its anchors start where k-means finds them
    without labels, as in Section 4.5 of the paper, and are trained by Adam until the validation accuracy stops rising.

    Parameters
    ----------
    n_layers : int, optional
        Number of layers. None is 2 for a network, and the default of `FisherEmbedding` for a probe.
    n_anchors : int, optional
        Number of mixture components of a layer. None is 4 for a network, and the default of `FisherEmbedding`.
    dim : int, optional
        Width of a layer. None is 64 for a network, and the default of `FisherEmbedding` for a probe.
    mode : {"network", "probe"}, default="network"
        Train a network, or probe the embedding.
    multiset : str or component, default="neighbourhood"
        The multiset of a node, with edge weights and directions, as in `FisherEmbedding`.
    family : str or component, default="gaussian-mixture"
        The manifold, as in `FisherConv`. The first layer of a `MultinomialMixture` reads the counts in X.
    em : EM, optional
        E-step, iterations, prior, and how the first anchors are learned. None is ``EM()``.
    structure : str, Structure or None, default="auto"
        Columns of the graph's own structure, as in `FisherEmbedding`. A network reads them without X alone.
    normalize : bool, default=True
        Divide the rows of X, and the points of every layer, by their lengths.
    network : Network, optional
        Heads, dropout and start of the network. None is ``Network()``. A probe has none.
    training : Training, optional
        Learning rate, epochs, early stopping and mini-batches. None is ``Training()``. A probe has none.
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
        A row per epoch of the network; `fishergraph.plots.training` draws it.
    n_iter_ : int
        Number of epochs of the network.
    embedding_ : FisherEmbedding
        The embedding of a probe.
    probe_ : GraphProbe
        The probe, with a report of what was tried. Its classes are the numbers of `classes_`.
    encoder_ : TableEncoder or None
        What encodes a table X that is not of complete numbers.
    n_features_in_, n_samples_fit_ : int
        Number of columns of X, after the encoding of a table, and of nodes of the fit.
    feature_names_in_ : ndarray of str
        Names of the columns of X, if it had any.

    See Also
    --------
    FisherEmbedding : The same layers without labels.
    GraphProbe : The probe of any embedding.
    fishergraph.nn.FisherNet : The network as a torch module.

    Examples
    --------
    >>> from fishergraph import FisherClassifier
    >>> from fishergraph.datasets import load_graph
    >>> cora = load_graph("cora")
    >>> y = cora.y.copy()
    >>> y[cora.test] = -1  # unlabelled
    >>> model = FisherClassifier(mode="probe", random_state=0).fit(cora.X, y, graph=cora.graph, val=cora.val)
    >>> model.predict(cora.X, graph=cora.graph).shape
    (2708,)
    """

    n_features_in_: int
    _remembered: ClassVar[tuple[str, ...]] = ("n_features_in_", "n_samples_fit_", "structural_", "needs_graph_")
    _chosen: ClassVar[dict[str, Any]] = {
        "multiset": choose_multiset,
        "family": choose_family,
        "em": choose_em,
        "network": partial(_settings, "network"),
        "training": partial(_settings, "training"),
        "device": choose_device,
    }

    def __init__(
        self,
        n_layers: int | None = None,
        n_anchors: int | None = None,
        dim: int | None = None,
        *,
        mode: str = "network",
        multiset: str | Rule = "neighbourhood",
        family: str | Family = "gaussian-mixture",
        em: EM | None = None,
        structure: str | Structure | None = "auto",
        normalize: bool = True,
        network: Network | None = None,
        training: Training | None = None,
        device: str | Device = "cpu",
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: Verbose = False,
    ):
        self.n_layers = n_layers
        self.n_anchors = n_anchors
        self.dim = dim
        self.mode = mode
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
    def fit(
        self,
        X: MatrixLike = None,
        y: object = None,
        *,
        graph: GraphLike = None,
        val: object = None,
        checkpoint: str | Path | None = None,
        resume: bool = False,
        log: str | Path | None = None,
    ) -> Self:
        """Learn from the labelled rows; the others belong to the graph all the same.

        Parameters
        ----------
        X : matrix of shape (n_nodes, n_features), or None
            Features, dense or CSR; None uses structural features of the graph. A network with a ``batch_size`` is
            also trained on a `fishergraph.scale.Store`, which has the edges too.
        y : array of shape (n_nodes,)
            Labels; −1, None, NaN and '' mark rows without one. A Series must be in the order of the rows.
        graph : graph, optional
            Anything that `as_graph` takes; None makes every row its own multiset.
        val : mask or row numbers, optional
            Labelled rows that decide when to stop the training, or how to mix the heads of the probe. None holds some
            out: a tenth for a network (`Training`), and a third for a probe, which is fitted to them too in the end.
        checkpoint, resume, log : path, bool, path
            Of a network; see `fishergraph.nn.train`.

        Returns
        -------
        FisherClassifier
            The fitted model.
        """
        self.check()
        for name in _SOMETIMES:
            vars(self).pop(name, None)
        words = check_random_state(_validation.check_random_seed(self.random_state)).randint(0, 2**31 - 1, size=3)
        seeds = [int(word) for word in words]
        files = {"checkpoint": checkpoint, "resume": resume, "log": log}
        if self.mode == "probe":
            check_left_out(files, "be left out in the mode 'probe', which has no epochs", "set mode='network'")
            if isinstance(X, Source):
                advice = "set mode='network', or fit a GraphProbe to the embedding of the store"
                raise InputError(parameter="mode", value="probe", expected="be 'network' for a store", advice=advice)
            self._fit_probe(X, y, graph, val, seeds[2])
        else:
            self._fit_network(X, y, graph, val, seeds, files)
        return self

    def _fit_probe(self, X: MatrixLike, y: object, graph: GraphLike, val: object, seed: int) -> None:
        X, graph = features_and_graph(X, graph, fitting=True)
        nodes = read_graph(X, graph, choose_multiset(self.multiset))
        embedding = FisherEmbedding(**self._embedding_params())
        self.classes_, (self.embedding_, self.probe_) = fit_probe(embedding, X, y, nodes, val, seed)
        names = {*self._remembered, "structure_", "feature_names_in_", "encoder_"}
        vars(self).update({name: value for name, value in vars(embedding).items() if name in names})

    def _fit_network(
        self, X: MatrixLike, y: object, graph: GraphLike, val: object, seeds: list[int], files: dict[str, Any]
    ) -> None:
        from fishergraph.nn.lifted import n_outputs
        from fishergraph.nn.node_network import fit_network, fit_stored_network

        self.structure_, self.encoder_ = None, None
        if isinstance(X, Source):
            self._begin_source(X, graph)
            fit, width, self.n_samples_fit_ = partial(fit_stored_network, X), X.n_features, cast(Any, X).n_nodes
        else:
            rows, sets, ids = self._read(X, graph, fitting=True, seed=seeds[0])
            check_row_order(y, ids, IN_ORDER)
            fit, width, self.n_samples_fit_ = partial(fit_network, rows, sets), rows.shape[1], n_outputs(sets)
        network, training = _settings("network", self.network), _settings("training", self.training)
        self.classes_, codes = read_labels(y, self.n_samples_fit_)
        held = None if val is None else read_rows(val, len(codes), "val")
        held = hold_out(codes, training.validation_fraction, seeds[2]) if held is None else held
        options = {"network": network, "training": training, "files": files, "verbose": self.verbose, "seed": seeds[1]}
        options |= {"config": self._config(width, len(self.classes_)), "classes": self.classes_.tolist()}
        self.net_, self.history_ = fit(codes, held, **options, **self._where())
        self.n_iter_ = len(self.history_)

    def _begin_source(self, source: Source, graph: GraphLike) -> None:
        """Remember the features of a graph that is read by rows."""
        self.structural_, self.needs_graph_ = False, True
        check_store(source, graph, Device(), structural=False)
        self.n_features_in_ = source.n_features
        if source.feature_names is not None:
            self.feature_names_in_ = np.array(source.feature_names, dtype=object)

    @each_warning_once()
    def _outputs(self, X: MatrixLike, graph: GraphLike, nodes: NodesLike) -> Outputs:
        check_is_fitted(self)
        self._check_unchanged()
        if self.mode == "probe":
            X, graph = features_and_graph(X, graph, fitting=False)
            check_same_source(X, graph, structural=self.structural_, needs_graph=self.needs_graph_)
            if len(getattr(columns := cast(Any, X), "shape", ())) == 2 and not _arrays.is_table(X):
                validate_data(self, columns, reset=False, skip_check_array=True)
            graph = read_graph(X, graph, choose_multiset(self.multiset))
            return NodeProbe(self.embedding_, self.probe_).outputs(X, graph, nodes)
        from fishergraph.nn.node_network import network_outputs, stored_outputs

        if isinstance(X, Source):
            check_store(X, graph, Device(), structural=self.structural_)
            outputs, n_rows = stored_outputs(self.net_, X, **self._where()), cast(Any, X).n_nodes
            asked = () if nodes is None else (read_nodes_of(nodes, None, n_rows)[0],)
            return Outputs(outputs[0][asked], outputs[1][asked], None, n_rows, *asked)
        rows, sets, ids = self._read(X, graph, fitting=False)
        n_rows = n_result_rows(sets)
        asked = () if nodes is None else (read_nodes_of(nodes, ids, n_rows)[0],)
        return Outputs(*network_outputs(self.net_, rows, sets, *asked, **self._where()), ids, n_rows, *asked)

    def _where(self) -> dict[str, Any]:
        return {"device": choose_device(self.device).name, "n_jobs": _validation.check_n_jobs(self.n_jobs)}

    def _read(self, X: MatrixLike, graph: GraphLike, *, fitting: bool, seed: int = 0) -> tuple[Any, Any, Any]:
        """X, its multisets, and the ids of the rows."""
        X, graph = features_and_graph(X, graph, fitting=fitting)
        if fitting:
            self.structural_, self.needs_graph_ = X is None, graph is not None
        else:
            check_same_source(X, graph, structural=self.structural_, needs_graph=self.needs_graph_)
        settings = InputSettings(
            rule=choose_multiset(self.multiset),
            family=choose_family(self.family),
            normalize=self.normalize,
            device=choose_device(self.device),
            n_jobs=_validation.check_n_jobs(self.n_jobs),
            progress=progress_bar(self.verbose),
            encode=partial(self._encode, fitting=fitting),
            check_columns=lambda X: validate_data(self, X, reset=fitting, skip_check_array=True),
        )
        dim, wanted = self._size("dim"), choose_structure(self.structure) if X is None else None
        reader = StructureReader(wanted, dim, False, seed, self.structure_, settings.n_jobs, settings.progress)
        rows, sets, ids, _ = read_host(X, graph, settings, reader)
        self.structure_ = reader.fitted
        if sp.issparse(rows) and _settings("training", self.training).batch_size is not None:
            _arrays.check_dense(rows)
            rows = rows.toarray()  # batches are cut from dense rows
        return rows, sets, ids

    def _config(self, n_features: int, n_classes: int) -> dict[str, Any]:
        network = _settings("network", self.network).get_params(deep=False)
        del network["init"]
        return {
            "in_channels": n_features,
            "hidden_channels": self._size("dim"),
            "num_layers": self._size("n_layers"),
            "out_channels": n_classes,
            "num_anchors": self._size("n_anchors"),
            "multiset": choose_multiset(self.multiset),
            "family": choose_family(self.family),
            "em": choose_em(self.em),
            "normalize": self.normalize,
            **network,
        }

    def _size(self, name: str) -> int:
        return SIZES[name] if getattr(self, name) is None else getattr(self, name)

    def _embedding_params(self) -> dict[str, Any]:
        params = self.get_params(deep=False)
        own = {"mode", "network", "training"} | {name for name in SIZES if params[name] is None}
        return {name: value for name, value in params.items() if name not in own}

    def _components(self) -> dict[str, Any]:
        left_out = ("network", "training") if isinstance(self.mode, str) and self.mode == "probe" else ()
        return {name: choose for name, choose in self._chosen.items() if name not in left_out}

    def check(self) -> None:
        """Raise an `InputError` unless every parameter is valid."""
        if _validation.look_up({"network": False, "probe": True}, self.mode, "mode"):
            given, advice = {"network": self.network, "training": self.training}, "set mode='network', or leave it out"
            check_left_out(given, "be None in the mode 'probe'", advice)
            FisherEmbedding(**self._embedding_params()).check()
            return
        rule, device = choose_multiset(self.multiset), choose_device(self.device)
        network, training = _settings("network", self.network), _settings("training", self.training)
        network.check()
        training.check()
        choose_family(self.family)
        choose_em(self.em)
        choose_structure(self.structure)
        check_sizes({name: self._size(name) for name in SIZES})
        _validation.check_flag(self.normalize, "normalize")
        check_network(device, rule, training)

    def _check_unchanged(self) -> None:
        """Raise if a parameter was changed after the fit."""
        check_same({"mode": "probe" if hasattr(self, "probe_") else "network"}, {"mode": self.mode})
        if self.mode == "probe":
            self.embedding_.set_params(**self._embedding_params())  # it compares them with its fit
            return
        fitted = self.net_.config()
        for name, value in self._config(fitted["in_channels"], len(self.classes_)).items():
            parameter = PARAMETERS.get(name, name)
            check_same({parameter: fitted[name]}, {parameter: value})

    def _state(self) -> dict[str, Any]:
        self._check_unchanged()
        classes = {"classes": self.classes_.tolist(), "classes_dtype": self.classes_.dtype.str}
        if self.mode == "probe":
            return {**classes, **NodeProbe(self.embedding_, self.probe_).pack()[0]}
        return {**classes, "structure": self.structure_, "history": vars(self.history_), **encoder_part(self.encoder_)}

    def _weights(self) -> dict[str, np.ndarray]:
        if self.mode == "probe":
            return NodeProbe(self.embedding_, self.probe_).pack()[1]
        from fishergraph.nn.node_network import network_weights

        return network_weights(self.net_)

    def _restore(self, state: ModelState) -> None:
        self.check()
        self.classes_ = read_classes(state.parts.pop("classes"), state.parts.pop("classes_dtype"))
        if self.mode == "probe":
            self.embedding_, self.probe_ = NodeProbe.unpack(self._embedding_params(), state, len(self.classes_))
            self.structure_, self.encoder_ = self.embedding_.structure_, self.embedding_.encoder_
            return
        from fishergraph.nn.history import read_history
        from fishergraph.nn.node_network import read_network

        self.structure_ = state.structure("structure", choose_structure(self.structure))
        self.encoder_ = state.encoder(self.n_features_in_)
        n_columns = choose_multiset(self.multiset).n_columns(self.n_features_in_)
        self.net_ = read_network(self._config(n_columns, len(self.classes_)), state.arrays)
        self.history_ = read_history(state.parts.pop("history"))
        self.n_iter_ = len(self.history_)
