"""`FisherEmbedding`: the unsupervised embedding of the nodes of a graph, as a scikit-learn transformer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from fishergraph import _checks
from fishergraph.blocks import one_blas_thread
from fishergraph.em.anchors import METHODS
from fishergraph.em.e_step import E_STEPS
from fishergraph.estimators.progress import progress_bar
from fishergraph.estimators.stack import StackSpec, fit_stack, run_stack
from fishergraph.estimators.state import load_state, save_state
from fishergraph.graph import as_graph, names_nodes
from fishergraph.kernel_map import KERNELS
from fishergraph.layer import ATTENTIONS, LayerSpec
from fishergraph.multiset import MULTISETS, WEIGHTS, Multisets, singletons
from fishergraph.ops import choose_backend
from fishergraph.structural import describe_structure, structural_features


class FisherEmbedding(TransformerMixin, BaseEstimator):
    """Embed the nodes of a graph with the geometry of a statistical manifold, without labels, in one pass.

    Each layer takes the multiset of every node's neighbours, projects it onto a Gaussian mixture by EM that starts at
    anchors learned from the data, and maps the whitened tangent vector by a Nyström map of the exponential kernel.
    The output is the concatenation ψ_0 … ψ_T, whose inner product is the multilayer kernel (Eq. 2).

    Parameters
    ----------
    n_layers : number of layers T; 0 gives the input map alone.
    n_anchors : number of mixture components p of a layer.
    dim : width of every ψ_t (fewer where the data hold fewer distinct points).
    normalize : divide the rows of X, and the points of every layer, by their lengths.
    anchor_method : "kmeans"; "spherical" (for unit vectors, so with `normalize`); "em"; "random".
    n_em_iter : EM iterations per layer; 1 is the paper, 0 gives φ = 0.
    e_step : "posterior".
    attention : "posterior", the paper's equations, or "reference", the rule of the authors' code.
    variance : σ² of the components, or "auto": the value at which the mean entropy of the responsibilities is
        `sharpness` · log p, layer by layer.
    sharpness : see `variance`; between 0 (hard assignment) and 1 (no attention at all: mean pooling).
    prior : κ ≥ 0, the weight of an anchor as one more member of its component; 0 is the paper.
    counts : append the soft counts log(1 + mass), which tell {x} from {x, x}.
    multiset : "neighbourhood" (with the node itself) or "open-neighbourhood".
    weights : None, the graph's own weights; "uniform"; "symmetric", divided by the roots of both ends' degrees.
    undirected : add the reverse of every edge.
    structure : features for `X=None`: "projection", "degree" or "spectral".
    kernel : "exp" or "identity" (φ itself; widths then grow by p per layer).
    bandwidth : σ of the exponential kernel.
    block_weights : one weight per block ψ_0 … ψ_T in Eq. 2; 0 leaves a block out. None weighs all equally.
    max_samples : most points that k-means looks at.
    device, backend : "cpu", and None, "numba" or "scipy".
    random_state : seed; every layer has its own stream.
    n_jobs : threads; None uses every core. The result has the same bits at any number.
    verbose : show a progress bar per layer.

    Attributes
    ----------
    stack_ : the fitted input map and layers.
    n_features_in_, feature_names_in_ : as in scikit-learn.

    Examples
    --------
    >>> from fishergraph import FisherEmbedding
    >>> from fishergraph.datasets import load_graph
    >>> cora = load_graph("cora")
    >>> Z = FisherEmbedding(random_state=0).fit_transform(cora.X, graph=cora.graph)
    """

    def __init__(
        self,
        n_layers: int = 5,
        n_anchors: int = 4,
        dim: int = 256,
        *,
        normalize: bool = True,
        anchor_method: str = "kmeans",
        n_em_iter: int = 1,
        e_step: str = "posterior",
        attention: str = "posterior",
        variance: float | str = "auto",
        sharpness: float = 0.9,
        prior: float = 0.0,
        counts: bool = False,
        multiset: str = "neighbourhood",
        weights: str | None = None,
        undirected: bool = False,
        structure: str = "projection",
        kernel: str = "exp",
        bandwidth: float = 1.5,
        block_weights: Any = None,
        max_samples: int = 300_000,
        device: str = "cpu",
        backend: str | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ):
        self.n_layers = n_layers
        self.n_anchors = n_anchors
        self.dim = dim
        self.normalize = normalize
        self.anchor_method = anchor_method
        self.n_em_iter = n_em_iter
        self.e_step = e_step
        self.attention = attention
        self.variance = variance
        self.sharpness = sharpness
        self.prior = prior
        self.counts = counts
        self.multiset = multiset
        self.weights = weights
        self.undirected = undirected
        self.structure = structure
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.block_weights = block_weights
        self.max_samples = max_samples
        self.device = device
        self.backend = backend
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, *, graph: Any = None) -> FisherEmbedding:
        """Learn the input map, anchors and landmarks from the rows of X and the graph on them.

        X is dense or CSR, (node, feature), or None for structural features of the graph. `graph` is anything that
        `as_graph` takes; None makes every row its own multiset. `y` is not looked at.
        """
        self._fit(X, graph, want_output=False)
        return self

    def fit_transform(self, X: Any, y: Any = None, *, graph: Any = None) -> Any:
        """`fit(X, graph=graph).transform(X, graph=graph)`, bit for bit, in one pass."""
        return self._fit(X, graph, want_output=True)

    def transform(self, X: Any, *, graph: Any = None) -> np.ndarray:
        """The embedding of the rows of X: the same graph, a larger one, or another one. Nothing is learned."""
        check_is_fitted(self)
        spec = self._spec()
        X, sets = self._door(X, graph, fitting=False)
        with one_blas_thread():
            return run_stack(spec, self.stack_, X, sets)

    def _fit(self, X: Any, graph: Any, *, want_output: bool) -> Any:
        spec = self._spec()
        generator = check_random_state(self.random_state)
        words = generator.randint(0, 2**32, size=4, dtype=np.uint32)
        self._structure_seed = int(words[0])
        X, sets = self._door(X, graph, fitting=True)
        seed = np.random.SeedSequence([int(word) for word in words])
        with one_blas_thread():
            self.stack_, output = fit_stack(spec, X, sets, seed, want_output=want_output)
        return output

    def _door(self, X: Any, graph: Any, *, fitting: bool) -> tuple[Any, Multisets]:
        """X checked, and the multisets of the graph: the only place where input is looked at."""
        if X is None and graph is None:
            raise ValueError("X or graph must be given, got None for both; pass features, a graph, or both.")
        if graph is not None:
            labels = _checks.row_labels(X)
            graph = as_graph(graph, undirected=self.undirected, node_ids=labels if names_nodes(graph) else None)
            _checks.check_same_order(labels, graph.ids)
        if X is None:
            X = structural_features(graph, self.structure, dim=self.dim, seed=self._structure_seed)
        X = validate_data(
            self,
            X,
            reset=fitting,
            accept_sparse="csr",
            dtype=[np.float32, np.float64],
            order="C",
            ensure_all_finite=False,
        )
        _checks.check_finite_rows(X)
        _checks.check_scale(X, normalize=self.normalize)
        if sp.issparse(X):
            X = sp.csr_array(X, copy=not X.has_canonical_format)
            X.sum_duplicates()
        if graph is None:
            return X, singletons(X.shape[0])
        _checks.check_same_rows(X.shape[0], graph.n_nodes)
        _checks.check_weight_scale(graph.weights, X.dtype)
        return X, MULTISETS[self.multiset](graph, self.weights)

    def _spec(self) -> StackSpec:
        """The parameters, checked and with names looked up."""
        _checks.look_up({"cpu": "cpu"}, self.device, "device")
        _checks.look_up(MULTISETS, self.multiset, "multiset")
        _checks.look_up(WEIGHTS, "edge" if self.weights is None else self.weights, "weights")
        _checks.check_flag(self.undirected, "undirected")
        describe_structure(self.structure)  # an unknown kind is found even where X is given
        n_layers = _checks.check_integer(self.n_layers, "n_layers", least=0)
        return StackSpec(
            layer=self._layer_spec(),
            n_layers=n_layers,
            normalize=_checks.check_flag(self.normalize, "normalize"),
            block_weights=_checks.check_block_weights(self.block_weights, n_layers + 1),
            n_jobs=_checks.check_n_jobs(self.n_jobs),
            progress=progress_bar(self.verbose),
        )

    def _layer_spec(self) -> LayerSpec:
        e_step = _checks.look_up(E_STEPS, self.e_step, "e_step")
        attention = _checks.look_up(ATTENTIONS, self.attention, "attention")
        if attention.e_step in E_STEPS.values():
            attention = attention.with_e_step(e_step)
        variance = self.variance
        if not isinstance(variance, str) or variance != "auto":
            variance = _checks.check_number(variance, "variance (or 'auto')", least=1e-12, most=1e12)
        n_em_iter = _checks.check_integer(self.n_em_iter, "n_em_iter", least=0)
        choose_backend(self.backend, n_em_iter=n_em_iter)  # a backend that cannot do the work says so before it
        return LayerSpec(
            n_anchors=_checks.check_integer(self.n_anchors, "n_anchors", least=1),
            anchor_method=self._anchor_method(),
            dim=_checks.check_integer(self.dim, "dim", least=1),
            n_em_iter=n_em_iter,
            variance=variance,
            sharpness=_checks.check_number(self.sharpness, "sharpness", strict=True, most=1.0),
            prior=_checks.check_number(self.prior, "prior", most=1e12),
            counts=_checks.check_flag(self.counts, "counts"),
            attention=attention,
            fit_map=_checks.look_up(KERNELS, self.kernel, "kernel"),
            keeps_phi=self.kernel == "identity",
            bandwidth=_checks.check_number(self.bandwidth, "bandwidth", least=1e-6, most=1e6),
            max_samples=_checks.check_integer(self.max_samples, "max_samples", least=1),
            backend=self.backend,
        )

    def _anchor_method(self) -> str:
        """The name of the anchors' learner; spherical k-means asks for points that are unit vectors."""
        _checks.look_up(METHODS, self.anchor_method, "anchor_method")
        if self.anchor_method == "spherical" and not self.normalize:
            raise ValueError(
                "anchor_method='spherical' needs points that are unit vectors, got normalize=False; "
                "set normalize=True, or use 'kmeans'."
            )
        return self.anchor_method

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The column names psi0_0, psi0_1, …, psi1_0, …: block and position in it."""
        check_is_fitted(self)
        widths, weights = self.stack_.widths, self._spec().block_weights
        kept = [(t, width) for t, (width, weight) in enumerate(zip(widths, weights, strict=True)) if weight > 0]
        return np.array([f"psi{t}_{k}" for t, width in kept for k in range(width)], dtype=object)

    def save(self, path: str | Path) -> None:
        """Write the fitted model to one safetensors file (arrays, and parameters as JSON in its header)."""
        check_is_fitted(self)
        save_state(self, path)

    @classmethod
    def load(cls, path: str | Path) -> FisherEmbedding:
        """The model that `save` wrote; its transform has the same bits."""
        return load_state(cls, path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
