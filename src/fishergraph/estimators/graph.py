"""`FisherGraphEmbedding`: one vector for every graph of a list, as a scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fishergraph import _arrays, _validation
from fishergraph._errors import FewPointsWarning
from fishergraph._parallel import one_blas_thread
from fishergraph._warn import each_warning_once
from fishergraph.embedding import log_counts, root_shares
from fishergraph.estimators.base import FisherTransformer, all_or_nothing
from fishergraph.estimators.door import enters_unit, host_placed
from fishergraph.estimators.graph_input import NodeCode, fit_code, name_node
from fishergraph.estimators.graph_stack import GraphSpec, check_stages, fit_stages, run_stages
from fishergraph.estimators.memory import check_memory
from fishergraph.estimators.model_checks import check_layer, check_stack, check_unit_spread, code_width
from fishergraph.estimators.progress import progress_bar
from fishergraph.estimators.readout import check_standard
from fishergraph.estimators.stack_spec import StackSpec
from fishergraph.estimators.state import pack_code, pack_layer, unpack_code, unpack_layer
from fishergraph.family import Family, choose_family
from fishergraph.graphs import Graphs, as_graphs
from fishergraph.kernel_map import KERNELS, fit_nystrom
from fishergraph.multiset import WEIGHTS, Rule, Tuples, choose_multiset, node_sets, node_tuples, slots_of

# What a readout keeps: a function of the masses alone, or φ of the means, with the counts or without: (alone, counts).
READOUTS: dict[str, tuple[Callable[[Any], Any] | None, bool]] = {
    "counts": (log_counts, False),
    "shares": (root_shares, False),
    "means": (None, False),
    "both": (None, True),
}


class FisherGraphEmbedding(FisherTransformer):
    """Embed graphs with the geometry of a statistical manifold, without labels, in one pass.

    The nodes of all graphs go through the layers of `FisherEmbedding` as one disjoint union: ψ_0, …, ψ_T. After each of
    them a graph is the multiset of its nodes' vectors, projected onto a Gaussian mixture with many sharp components.
    How many nodes of the graph lie near each of them, log(1 + Σ_v α_vj), is one block of the result: a soft histogram;
    with hard assignments it is that of Weisfeiler and Lehman's colours.

    Parameters
    ----------
    n_layers : number of node layers T; stage 0 is the nodes' own tags, features and degrees.
    n_anchors : number of mixture components of a node layer.
    dim : width of every ψ_t (fewer where the nodes have fewer distinct vectors).
    graph_anchors : number of mixture components of a readout, for each stage.
    graph_sharpness : as `sharpness`, for readouts.
    readout : "counts", log(1 + mass_j) of every component; "shares", √(mass_j / Σ_l mass_l), in which the Fisher
        metric of the mixture's weights is the Euclidean one; "means", φ of the components' means (`dim` columns per
        component); "both", these and the counts.
    graph_kernel : "identity", φ of the readout itself, or "exp", a Nyström map of it.
    graph_dim : width of that map.
    unit_blocks : divide every block of a graph by its length, which hides the graph's size.
    inputs : what nodes enter with: "auto", all there is and the degrees; or names out of "features", "tags",
        "edge-tags", "degrees", "cores" (core numbers: how densely the surroundings of a node hang together).
        Tags and degrees are one-hot over those seen in fit (an unseen tag gives zeros, an unseen degree counts as the
        nearest one), features are standardised.
    block_weights : one weight per stage 0 … T; 0 leaves a stage out. None weighs all equally.
    undirected : add the reverse of every edge.
    graph_family : as `family`, for readouts.
    multiset : as in `FisherEmbedding`; of "tuples" a graph is the multiset, not of its nodes.
    normalize, anchor_method, n_em_iter, e_step, column_penalty, variance, sharpness, prior, counts, family, fisher,
    tangent, weights, kernel, bandwidth, max_samples, device, backend, precision, random_state, n_jobs, verbose : as in
        `FisherEmbedding`; E-step, iterations and prior are those of the readouts too.

    Attributes
    ----------
    stack_ : the fitted input map and node layers.
    readouts_ : the fitted layer over graphs of every stage, None for one that is left out.
    code_ : what is known of tags, degrees and features.
    n_features_in_ : number of columns that a node enters with.

    Examples
    --------
    >>> import networkx as nx
    >>> from fishergraph import FisherGraphEmbedding
    >>> graphs = [nx.cycle_graph(n) for n in (5, 6, 7)] + [nx.star_graph(n) for n in (5, 6, 7)]
    >>> FisherGraphEmbedding(n_layers=1, random_state=0).fit_transform(graphs).shape[0]
    6
    """

    def __init__(
        self,
        n_layers: int = 3,
        n_anchors: int = 8,
        dim: int = 128,
        *,
        graph_anchors: int = 128,
        graph_sharpness: float = 0.1,
        readout: str = "counts",
        graph_kernel: str = "identity",
        graph_dim: int = 256,
        unit_blocks: bool = False,
        inputs: Any = "auto",
        block_weights: Any = None,
        normalize: bool = True,
        anchor_method: str = "kmeans",
        n_em_iter: int = 1,
        e_step: str = "posterior",
        column_penalty: float = 1.0,
        variance: float | str = "auto",
        sharpness: float = 0.4,
        prior: float = 0.0,
        counts: bool = True,
        family: str | Family = "gaussian-mixture",
        fisher: str = "approximate",
        tangent: str = "estimate",
        graph_family: str | Family = "gaussian-mixture",
        multiset: str | Rule = "neighbourhood",
        weights: str | None = None,
        undirected: bool = False,
        kernel: str = "exp",
        bandwidth: float = 1.0,
        max_samples: int = 300_000,
        device: str = "cpu",
        backend: str | None = None,
        precision: str = "float32",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ):
        self.n_layers = n_layers
        self.n_anchors = n_anchors
        self.dim = dim
        self.graph_anchors = graph_anchors
        self.graph_sharpness = graph_sharpness
        self.readout = readout
        self.graph_kernel = graph_kernel
        self.graph_dim = graph_dim
        self.unit_blocks = unit_blocks
        self.inputs = inputs
        self.block_weights = block_weights
        self.normalize = normalize
        self.anchor_method = anchor_method
        self.n_em_iter = n_em_iter
        self.e_step = e_step
        self.column_penalty = column_penalty
        self.variance = variance
        self.sharpness = sharpness
        self.prior = prior
        self.counts = counts
        self.family = family
        self.fisher = fisher
        self.tangent = tangent
        self.graph_family = graph_family
        self.multiset = multiset
        self.weights = weights
        self.undirected = undirected
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.max_samples = max_samples
        self.device = device
        self.backend = backend
        self.precision = precision
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, graphs: Any, y: Any = None) -> FisherGraphEmbedding:
        """Learn the code of the nodes, the node layers and the readouts from the graphs.

        `graphs` is anything that `as_graphs` takes: a list of NetworkX graphs, PyTorch Geometric `Data`, pairs
        (X, graph) or (tags, graph), or what `load_graphs` returns as `.graphs`. `y` is not looked at.
        """
        self._fit(graphs, want_output=False)
        return self

    def fit_transform(self, graphs: Any, y: Any = None) -> np.ndarray:
        """`fit(graphs).transform(graphs)`, bit for bit, in one pass."""
        return self._fit(graphs, want_output=True)

    @each_warning_once()
    def transform(self, graphs: Any) -> np.ndarray:
        """The embedding of the graphs, (graph, column) float32. Nothing is learned."""
        check_is_fitted(self)
        spec = self._spec()
        found = as_graphs(graphs, undirected=self.undirected)
        X, sets, members, spec = self._placed(spec, found, self.code_)
        with one_blas_thread(), spec.nodes.place.working(self.n_jobs):
            return run_stages(spec, self.stack_, self.readouts_, X, sets, members)

    @all_or_nothing
    def _fit(self, graphs: Any, *, want_output: bool) -> Any:
        spec = self._spec()
        seed = np.random.SeedSequence(self._seed_words())
        found = as_graphs(graphs, undirected=self.undirected)
        self.code_ = fit_code(found, self.inputs)
        X, sets, members, spec = self._placed(spec, found, self.code_)
        self.n_features_in_ = X.shape[1]
        # Nodes with only tags and degrees have few distinct vectors: fewer centres than asked for are normal.
        quiet = each_warning_once(silence=(FewPointsWarning,))
        with one_blas_thread(), spec.nodes.place.working(self.n_jobs), quiet:
            self.stack_, self.readouts_, output = fit_stages(spec, X, sets, members, seed, want_output=want_output)
        return output

    def _placed(self, spec: GraphSpec, graphs: Graphs, code: NodeCode) -> tuple[Any, Any, Any, GraphSpec]:
        """(nodes, their multisets, those of the graphs, spec) where the work is done."""
        _arrays.check_weight_scale(graphs.graph.weights, np.dtype(np.float32))
        rows, rule = code(graphs), choose_multiset(self.multiset)
        if spec.nodes.reads_counts:  # a zero row, of a tag that fit has not seen, is no direction and says nothing
            spec.nodes.layer.family.check_points(rows, "the nodes", name_node(graphs))
        for part in (spec.nodes, spec.readout) if code.standard is not None else ():
            check_standard(part, rows, name_node(graphs))
        if isinstance(rule, Tuples):
            options = {"weights": self.weights, "graph_ptr": graphs.graph_ptr, "max_tuples": rule.max_tuples}
            tuples = node_tuples(graphs.graph, rule.k, rule.s, **options)
            rows, sets, members = tuples.features(rows, normalize=enters_unit(self)), tuples.sets, tuples.graphs
        else:
            sets, members = rule(graphs.graph, self.weights, self.n_jobs), node_sets(graphs.graph_ptr)
        if sets.lifted:  # a path weighs the product of its edges
            _arrays.check_weight_scale(sets.weights, np.dtype(np.float32))
        X, sets, place = host_placed(self, rows, sets)
        if place.tensors:
            from fishergraph.ops.torch_graph import moved_sets

            members: Any = moved_sets(members, X.device)
        spec = spec.at(place)
        check_memory(spec.nodes, X, sets, want_output=False, beside=2 * spec.readout.layer.n_anchors * X.shape[0])
        return X, sets, members, spec

    def _spec(self) -> GraphSpec:
        """The parameters, checked and with names looked up."""
        _validation.check_device(self.device, self.precision)
        choose_multiset(self.multiset)
        _validation.look_up(WEIGHTS, "edge" if self.weights is None else self.weights, "weights")
        _validation.check_flag(self.undirected, "undirected")
        n_layers = _validation.check_integer(self.n_layers, "n_layers", least=0, most=_validation.MOST_LAYERS)
        layer = self._layer_spec()
        nodes = StackSpec(
            layer=layer,
            n_layers=n_layers,
            normalize=_validation.check_flag(self.normalize, "normalize"),
            block_weights=_validation.check_block_weights(self.block_weights, n_layers + 1),
            fit_input=fit_nystrom,
            n_jobs=_validation.check_n_jobs(self.n_jobs),
            progress=progress_bar(self.verbose),
        )
        alone, counts = _validation.look_up(READOUTS, self.readout, "readout")
        readout = replace(
            layer,
            n_anchors=_validation.check_integer(
                self.graph_anchors, "graph_anchors", least=1, most=_validation.MOST_ANCHORS
            ),
            sharpness=_validation.check_number(self.graph_sharpness, "graph_sharpness", strict=True, most=1.0),
            dim=_validation.check_integer(self.graph_dim, "graph_dim", least=1, most=_validation.MOST_COLUMNS),
            fit_map=_validation.look_up(KERNELS, self.graph_kernel, "graph_kernel"),
            keeps_phi=self.graph_kernel == "identity",
            masses=alone,
            family=self._readout_family(nodes),
            counts=counts,
        )
        return GraphSpec(nodes, replace(nodes, layer=readout), _validation.check_flag(self.unit_blocks, "unit_blocks"))

    def _readout_family(self, nodes: StackSpec) -> Family:
        """The family of the readouts; ψ has no counts, the nodes of stage 0 may have."""
        family = choose_family(self.graph_family)
        real = [t for t, weight in enumerate(nodes.block_weights) if weight > 0 and (t > 0 or not nodes.reads_counts)]
        if family.support == "counts" and real:
            raise ValueError(
                f"graph_family must be a family of real vectors, since a readout sees ψ, got {family.name!r}, a family "
                f"of counts, at stage {real[0]}; use 'gaussian-mixture'."
            )
        return family

    def _check_fitted(self) -> None:
        spec, rule = self._spec(), choose_multiset(self.multiset)
        width = code_width(self.code_)
        width = rule.n_columns(width) if isinstance(rule, Tuples) else width
        if width != self.n_features_in_:
            raise ValueError(f"nodes must enter with {self.n_features_in_} columns, got {width}; get the file again.")
        check_stack(spec.nodes, self.stack_, width, slots_of(self.multiset))
        check_stages(spec, self.stack_, self.readouts_, width)
        first = width if spec.nodes.reads_counts else self.stack_.widths[0]
        for t, (layer, points) in enumerate(zip(self.readouts_, [first, *self.stack_.widths[1:]], strict=True)):
            if layer is not None:
                check_layer(spec.readout.layer, layer, points, f"readout{t}")
                if spec.nodes.normalize:
                    check_unit_spread(layer.theta, f"readout{t}")

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The column names phi0_0, phi0_1, …, phi1_0, …: stage and position; psi with a kernel map."""
        check_is_fitted(self)
        name = "phi" if self.graph_kernel == "identity" else "psi"
        kept = [(t, layer.kernel_map.n_outputs) for t, layer in enumerate(self.readouts_) if layer is not None]
        return np.array([f"{name}{t}_{k}" for t, width in kept for k in range(width)], dtype=object)

    _more = ("readouts", "code")

    def _pack_more(self, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
        readouts = [
            None if layer is None else pack_layer(layer, f"readout{t}", arrays)
            for t, layer in enumerate(self.readouts_)
        ]
        return {"readouts": readouts, "code": pack_code(self.code_, arrays)}

    def _unpack_more(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self.readouts_ = tuple(
            None if entry is None else unpack_layer(entry, f"readout{t}", arrays)
            for t, entry in enumerate(header["readouts"])
        )
        self.code_ = unpack_code(header["code"], arrays)
