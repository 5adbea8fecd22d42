"""`FisherGraphEmbedding`: one vector for every graph of a list, as a scikit-learn transformer.

A graph is the multiset of its nodes: a node embedding runs over the union of all graphs, and after each of its stages
one layer reads every graph as the multiset of its nodes' points.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np
from array_api_compat import array_namespace
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from fishergraph import _arrays, _validation
from fishergraph._errors import FewPointsWarning, InputError, InputTypeError
from fishergraph._parallel import one_blas_thread
from fishergraph._progress import Verbose, progress_bar
from fishergraph._typing import RandomState, Rows, Sets
from fishergraph._warn import each_warning_once
from fishergraph.costs import check_memory, layer_costs, stack_costs
from fishergraph.device import Device, Workspace, choose_device, moved
from fishergraph.estimators.base import FisherTransformer, all_or_nothing, check_same, check_unchanged
from fishergraph.estimators.graph_input import NodeCode, fit_code, name_node, part_names
from fishergraph.estimators.inputs import InputSettings, build_sets, in_host_workspace
from fishergraph.estimators.model_checks import check_layer, check_stack, check_unit_spread, code_width
from fishergraph.estimators.node import STACK_PARAMETERS, FisherEmbedding
from fishergraph.estimators.readout import Readout, choose_readout
from fishergraph.estimators.sets import check_standard, fit_layer, written
from fishergraph.estimators.state import ModelState
from fishergraph.family import GaussianMixture
from fishergraph.family.base import unit_normalize
from fishergraph.graphs import Graphs, as_graphs
from fishergraph.kernel_map import Identity, Nystrom
from fishergraph.layer import Layer
from fishergraph.multiset import choose_multiset
from fishergraph.passes import Pass
from fishergraph.stack import Stack

GraphsLike: TypeAlias = object  # anything that `as_graphs` takes
# Parameters of the node embedding that the graph embedding has itself, or has no use for.
_OWN = ("structure", "device", "random_state", "n_jobs", "verbose")


def default_nodes() -> FisherEmbedding:
    """The node embedding of `FisherGraphEmbedding` by default."""
    return FisherEmbedding(
        n_layers=3,
        n_anchors=1,
        dim=128,
        family=GaussianMixture(sharpness=0.4),
        kernel=Nystrom(bandwidth=1.0),
        walk=None,
        counts=True,
    )


def choose_nodes(nodes: FisherEmbedding | None) -> FisherEmbedding:
    """Return the node embedding, the default one for None."""
    if nodes is None:
        return default_nodes()
    if not isinstance(nodes, FisherEmbedding):
        raise InputTypeError(
            parameter="nodes", value=nodes, expected="be a FisherEmbedding or None", advice="pass FisherEmbedding(…)"
        )
    defaults = FisherEmbedding()
    for name in _OWN:
        value, default = getattr(nodes, name), getattr(defaults, name)
        if type(value) is not type(default) or value != default:
            raise InputError(
                parameter=f"nodes.{name}",
                value=value,
                expected="be left at its default inside FisherGraphEmbedding",
                advice=f"set {name} of FisherGraphEmbedding" if name != "structure" else "choose inputs=… instead",
            )
    return nodes


class _Settings(NamedTuple):
    """The stack over the nodes, the layer of the readouts, and whether their blocks are unit vectors."""

    stack: Stack
    readout: Layer
    unit: bool


class _GraphInput(NamedTuple):
    """The nodes of all graphs as points, their multisets, those of the graphs, and the workspace."""

    X: Any
    sets: Sets
    graphs: Sets
    workspace: Workspace


class FisherGraphEmbedding(FisherTransformer):
    """Embed graphs, without labels, in one pass.

    The nodes of all graphs go through the stages of a `FisherEmbedding` as one disjoint union. After each stage a graph
    is the multiset of its nodes' points, projected onto a mixture with many sharp components (`Readout`), and gives one
    block of the result.

    Parameters
    ----------
    nodes : FisherEmbedding, optional
        The embedding of the nodes. None is ``FisherEmbedding(n_layers=3, n_anchors=1, dim=128,
        family=GaussianMixture(sharpness=0.4), kernel=Nystrom(bandwidth=1.0), walk=None, counts=True)``,
        means of neighbourhoods and their sizes. Its `block_weights` weigh the blocks of the result.
    readout : Readout or str, optional
        How a graph is read; a text is the `reading`. None is ``Readout()``.
    inputs : "auto" or sequence of str, default="auto"
        What nodes enter with: "auto" is everything the graphs have and the degrees; or names out of "features", "tags",
        "edge-tags", "degrees", "cores" (core numbers). Tags and degrees are one-hot over those seen in fit (an unseen
        tag gives zeros, an unseen degree counts as the nearest one), features are standardised.
    device : str or Device, default="cpu"
        "cpu", "cuda" or "cuda:1", or ``Device("cuda", precision="bf16")``.
    random_state : int, RandomState or None, default=None
        Seed.
    n_jobs : int, optional
        Threads; None uses every core. The result has the same bits at any number.
    verbose : bool or callable, default=False
        Show progress bars; see `FisherEmbedding`.

    Attributes
    ----------
    stack_ : Stack
        The fitted input map and node layers.
    readouts_ : tuple of Layer or None
        The fitted layer over graphs of every stage, None for one that is left out.
    code_ : NodeCode
        The tags, degrees and features that fit has seen.
    n_features_in_, n_samples_fit_ : int
        Number of columns that a node enters with, and of graphs of the fit.

    See Also
    --------
    FisherEmbedding : Embed the nodes of one graph.
    graph_kernel : The Gram matrix of graphs.

    Examples
    --------
    >>> import networkx as nx
    >>> from fishergraph import FisherEmbedding, FisherGraphEmbedding
    >>> graphs = [nx.cycle_graph(n) for n in (5, 6, 7)] + [nx.star_graph(n) for n in (5, 6, 7)]
    >>> model = FisherGraphEmbedding(nodes=FisherEmbedding(n_layers=1, walk=None), random_state=0)
    >>> model.fit_transform(graphs).shape[0]
    6
    """

    _chosen: ClassVar[dict[str, Any]] = {"readout": choose_readout, "device": choose_device}

    def __init__(
        self,
        nodes: FisherEmbedding | None = None,
        readout: Readout | str | None = None,
        *,
        inputs: str | Sequence[str] = "auto",
        device: str | Device = "cpu",
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: Verbose = False,
    ):
        self.nodes = nodes
        self.readout = readout
        self.inputs = inputs
        self.device = device
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def set_params(self, **params: Any) -> Self:
        if any(name.startswith("nodes__") for name in params):  # set on a copy: the caller's stays as it is
            nodes = params.get("nodes", self.nodes)
            params["nodes"] = default_nodes() if nodes is None else clone(nodes)
        return super().set_params(**params)

    def fit(self, graphs: GraphsLike, y: object = None) -> Self:
        """Learn the code of the nodes, the node layers and the readouts from the graphs.

        Parameters
        ----------
        graphs : list of graphs
            Anything that `as_graphs` takes: NetworkX graphs, PyTorch Geometric `Data`, pairs (X, graph) or
            (tags, graph), or the ``.graphs`` of `load_graphs`.
        y : ignored
            Present for scikit-learn's API.

        Returns
        -------
        FisherGraphEmbedding
            The fitted estimator.
        """
        self._fit(graphs, want_output=False)
        return self

    def fit_transform(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, graphs: GraphsLike, y: object = None
    ) -> Any:
        """Fit, and return the embedding of the same graphs, in one pass.

        Parameters
        ----------
        graphs, y : list of graphs, ignored
            See `fit`.

        Returns
        -------
        array of shape (n_graphs, n_columns)
            One row per graph, float32.
        """
        return self._fit(graphs, want_output=True)

    @each_warning_once()
    def transform(self, graphs: GraphsLike) -> Any:
        """Return the embedding of the graphs; nothing is learned.

        Parameters
        ----------
        graphs : list of graphs
            See `fit`.

        Returns
        -------
        array of shape (n_graphs, n_columns)
            One row per graph, float32.
        """
        check_is_fitted(self)
        settings = self._settings()
        self._check_unchanged(settings)
        X, sets, members, workspace = self._read(graphs, settings, self.code_)
        run = self._run(workspace, settings.readout.em, partial(_costs, settings, X, sets, members, fitting=False))

        def put(array: np.ndarray) -> Any:
            return workspace.put(array, X.dtype)

        with one_blas_thread(), workspace.working(self.n_jobs):
            blocks = []
            stages = Pass(moved(self.stack_, put), X, sets, run, keep_last=True).stages()
            for stage, layer in zip(stages, self.readouts_, strict=True):
                if layer is not None:
                    stage.run(run)
                    assert stage.points is not None
                    readout = moved(layer, put).over(stage.points, members, run)
                    blocks.append(written(readout, members.n_sets, run, X.dtype, title=_title(stage.name)))
            return _joined(settings, blocks)

    @all_or_nothing
    def _fit(self, graphs: GraphsLike, *, want_output: bool) -> Any:
        settings = self._settings()
        seed = np.random.SeedSequence(self._seed_words())
        union = as_graphs(graphs, undirected=self._rule().undirected)
        self.code_ = fit_code(union, self.inputs)
        X, sets, members, workspace = self._read(union, settings, self.code_)
        self.n_features_in_, self.n_samples_fit_ = X.shape[1], members.n_sets
        run = self._run(workspace, settings.readout.em, partial(_costs, settings, X, sets, members, fitting=True))
        streams = [workspace.stream(child) for child in seed.spawn(2 * len(settings.stack.names))]
        # Nodes with only tags and degrees have few distinct vectors: fewer centres than asked for are normal.
        quiet = each_warning_once(silence=(FewPointsWarning,))
        with one_blas_thread(), workspace.working(self.n_jobs), quiet:
            inner = Pass(settings.stack, X, sets, run, streams=streams[0::2], keep_last=True)
            readouts: list[Layer | None] = []
            blocks = []
            weights = settings.stack.block_weights
            sized = choose_readout(self.readout).layer(settings.stack.layer.em, members.n_sets)
            for stage, weight, rng in zip(inner.stages(), weights, streams[1::2], strict=True):
                if weight == 0:
                    readouts.append(None)
                    continue
                stage.run(run)
                assert stage.points is not None
                options: dict[str, Any] = {"title": _title(stage.name), "want_output": want_output}
                layer, block = fit_layer(sized, stage.points, members, run, rng, X.dtype, **options)
                layer = replace(layer, n_anchors=settings.readout.n_anchors)  # as asked; θ_0 may have fewer
                readouts.append(moved(layer, workspace.fetch))
                blocks.append(block)
            self.stack_, self.readouts_ = moved(inner.stack, workspace.fetch), tuple(readouts)
            self._sources = self._input_sources(settings)
            return _joined(settings, blocks) if want_output else None

    def _rule(self) -> Any:
        return choose_multiset(choose_nodes(self.nodes).multiset)

    def _settings(self) -> _Settings:
        """The parameters, validated."""
        choose_device(self.device)
        stack = choose_nodes(self.nodes).settings(graph=False)
        kernel = stack.input_kernel if isinstance(stack.input_kernel, Nystrom) else Nystrom(bandwidth=1.0)
        stack = replace(stack, input_kernel=kernel)
        readout = choose_readout(self.readout)
        layer = readout.layer(stack.layer.em)
        real = [t for t, weight in enumerate(stack.block_weights) if weight > 0 and (t > 0 or not stack.reads_counts)]
        if layer.family.support == "counts" and real:
            raise InputError(
                parameter="readout",
                value=readout,
                expected="have a family of real vectors, since a readout sees ψ",
                got=f"{layer.family!r}, a family of counts, at stage {real[0]}",
                advice="use family='gaussian-mixture'",
            )
        return _Settings(stack, layer, readout.unit)

    def _check_unchanged(self, settings: _Settings) -> None:
        names = {field: f"nodes.{name}" for field, name in STACK_PARAMETERS.items() if field != "input_kernel"}
        check_unchanged(self.stack_, settings.stack, {**names, "block_weights": "nodes.block_weights"})
        fitted = next(layer for layer in self.readouts_ if layer is not None)
        fields = ("n_anchors", "dim", "family", "em", "kernel", "reading")
        check_unchanged(fitted, settings.readout, {name: f"readout.{name}" for name in fields})
        check_same(self._sources, self._input_sources(settings))

    def _input_sources(self, settings: _Settings) -> dict[str, Any]:
        """The parameters that the rows of nodes and of graphs are made by."""
        inputs = [name if isinstance(name, str) else repr(name) for name in part_names(self.inputs)]
        return {"nodes.multiset": self._rule(), "inputs": inputs, "readout.unit": settings.unit}

    def _read(self, graphs: GraphsLike, settings: _Settings, code: NodeCode) -> _GraphInput:
        """The nodes of the graphs and their multisets, validated, in the workspace of the run."""
        rule, stack = self._rule(), settings.stack
        graphs = graphs if isinstance(graphs, Graphs) else as_graphs(graphs, undirected=rule.undirected)
        _arrays.check_weight_scale(graphs.graph.weights, np.dtype(np.float32))
        rows = code(graphs)
        if stack.reads_counts:  # a zero row, of a tag that fit has not seen, has no direction and is allowed
            stack.layer.family.check_points(rows, "the nodes", name_node(graphs))
        for layer in (stack.layer, settings.readout) if code.standard is not None else ():
            check_standard(layer, rows, name_node(graphs), normalize=stack.normalize)
        inputs = InputSettings(
            rule=rule,
            family=stack.layer.family,
            normalize=stack.normalize,
            n_jobs=_validation.check_n_jobs(self.n_jobs),
            progress=progress_bar(self.verbose),
        )
        rows, sets, members = build_sets(rows, graphs.graph, inputs, graphs.graph_ptr)
        X, sets, workspace = in_host_workspace(rows, sets, choose_device(self.device))
        if workspace.tensors:
            from fishergraph.ops.tensor_edges import moved_sets

            members: Any = moved_sets(members, X.device)
        more = 2 * settings.readout.n_anchors * X.shape[0]
        check_memory(stack, X, sets, workspace, want_output=False, more=more)
        return _GraphInput(X, sets, members, workspace)

    def _state(self) -> dict[str, Any]:
        return {"stack": self.stack_, "readouts": self.readouts_, "code": self.code_}

    def _restore(self, state: ModelState) -> None:
        settings, rule = self._settings(), self._rule()
        self.code_ = state.code("code")
        width = rule.n_columns(code_width(self.code_))
        if width != self.n_features_in_:
            raise ValueError(f"nodes must enter with {self.n_features_in_} columns, got {width}; get the file again.")
        self.stack_ = stack = state.stack("stack", settings.stack)
        self._sources = self._input_sources(settings)
        check_stack(stack, width, rule.slots)
        self.readouts_ = state.layers("readouts", settings.readout)
        points = [width if stack.reads_counts else stack.widths[0], *stack.widths[1:]]
        for t, (layer, weight, n_columns) in enumerate(zip(self.readouts_, stack.block_weights, points, strict=True)):
            if (layer is None) != (weight == 0):
                raise ValueError("there must be a readout for every stage with a weight; get the file again.")
            if layer is not None:
                check_layer(layer, n_columns, f"readout{t}")
                if stack.normalize:
                    check_unit_spread(layer.theta, f"readout{t}")

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        """Return the names of the columns: phi0_0, …, or psi0_0, … with a kernel map.

        Parameters
        ----------
        input_features : ignored
            Present for scikit-learn's API.

        Returns
        -------
        ndarray of str
            One name per column.
        """
        check_is_fitted(self)
        names = zip(self.stack_.names, self.readouts_, strict=True)
        kept = [(name, layer) for name, layer in names if layer is not None]
        return np.array([f"{_block(name, layer)}_{k}" for name, layer in kept for k in range(layer.n_outputs)], object)


def _costs(settings: _Settings, X: Rows, sets: Sets, members: Sets, *, fitting: bool) -> dict[str, float]:
    """The cost of every part of a call, by its title."""
    stack, costs = settings.stack, stack_costs(settings.stack, X, sets, fitting=fitting)
    stages = zip(stack.names, stack.asked_widths(X.shape[1], sets), stack.block_weights, strict=True)
    for name, width, weight in stages:
        if weight > 0:
            width = X.shape[1] if stack.reads_counts and name == "psi0" else width
            costs |= layer_costs(settings.readout, members, width, _title(name), fitting=fitting)
    return costs


def _title(stage: str) -> str:
    return f"graphs, stage {stage.removeprefix('psi')}"


def _block(stage: str, layer: Layer) -> str:
    """The name of a readout's block."""
    prefix = "phi" if isinstance(layer.kernel, Identity) else "psi"
    return f"{prefix}{stage.removeprefix('psi')}"


def _joined(settings: _Settings, blocks: list[Any]) -> Any:
    """The blocks √weight · readout side by side."""
    weights = [weight for weight in settings.stack.block_weights if weight > 0]
    unit = unit_normalize if settings.unit else lambda block: block
    scaled = [unit(block) * math.sqrt(weight) for block, weight in zip(blocks, weights, strict=True)]
    return array_namespace(blocks[0]).concat(scaled, axis=1)
