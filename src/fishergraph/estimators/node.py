"""`FisherEmbedding`: the unsupervised embedding of the nodes of a graph, as a scikit-learn transformer."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fishergraph import _validation
from fishergraph._parallel import one_blas_thread
from fishergraph._warn import each_warning_once
from fishergraph.estimators.base import FisherTransformer, all_or_nothing
from fishergraph.estimators.costs import embedding_costs, size_of
from fishergraph.estimators.door import check_no_graph, open_door
from fishergraph.estimators.memory import check_memory
from fishergraph.estimators.model_checks import check_stack
from fishergraph.estimators.progress import announce, progress_bar
from fishergraph.estimators.stack import check_same, fit_stack, run_stack
from fishergraph.estimators.stack_spec import StackSpec
from fishergraph.family import Family
from fishergraph.multiset import WEIGHTS, Rule, Tuples, choose_multiset, makes_lifted, slots_of
from fishergraph.structural import describe_structure


class FisherEmbedding(FisherTransformer):
    """Embed the nodes of a graph with the geometry of a statistical manifold, without labels, in one pass.

    Each layer takes the multiset of every node's neighbours, projects it onto a Gaussian mixture by EM that starts at
    anchors learned from the data, and maps the whitened tangent vector by a Nyström map of the exponential kernel.
    The output is the concatenation ψ_0 … ψ_T, whose inner product is the multilayer kernel (Eq. 2). Features enter as
    they are (ψ_0) and as the mean over the whole graph that walks from each node give (`teleport`).

    Parameters
    ----------
    n_layers : number of layers T; 0 gives the input maps alone.
    n_anchors : number of mixture components p of a layer.
    dim : width of every ψ_t (fewer where the data hold fewer distinct points).
    normalize : divide the rows of X, and the points of every layer, by their lengths.
    anchor_method : "kmeans"; "spherical" (for unit vectors, so with `normalize`); "em"; "random".
    n_em_iter : EM iterations per layer; 1 is the paper, 0 gives φ = 0.
    e_step : "posterior"; "balanced", every anchor has the same share of every multiset; "unbalanced", a penalty for it.
    column_penalty : the weight τ of that penalty: 0 is the posterior, a large one is balanced.
    attention : "posterior", the paper's equations, or "reference", the rule of the authors' code.
    variance : σ² of the components, or "auto": the value at which the mean entropy of the responsibilities is
        `sharpness` · log p, layer by layer.
    sharpness : see `variance`; between 0 (hard assignment) and 1 (no attention at all: mean pooling).
    prior : κ ≥ 0, the weight of an anchor as one more member of its component; 0 is the paper.
    counts : append the soft counts log(1 + mass), which tell {x} from {x, x}.
    family : what a multiset is projected onto: "gaussian-mixture", the paper's; "diagonal-mixture", with weights and
        variances; "gaussian", one with full covariance; "von-mises-fisher", for directions; "multinomial", for counts:
        the first layer then reads X as it is, and the later ones have Gaussian mixtures. Or a record with options of
        its own, such as `DiagonalMixture(tangent="score", power=0.5)`. `variance`, `sharpness` and `anchor_method` are
        those of the Gaussian mixture; the others learn all their parameters.
    fisher : "approximate", the closed form (Id/p in Eq. 18), or "exact", by quadrature or sampling.
    tangent : "estimate", φ = I^{1/2} (θ_ML − θ_0), the paper's, or "score", the Fisher vector I^{-1/2} ∇ log p.
    multiset : "neighbourhood" (with the node itself), "open-neighbourhood" or "hops", all nodes within two; the nodes a
        diffusion from the node reaches, weighted by it: "ppr" (personalised PageRank), "heat", "s2gc"; subgraphs:
        "pairs" (v, u) by their mean, "paths" of two edges side by side, "tuples" of nodes as points of their own. Or
        with parameters: `PageRank(teleport=0.05)`, `Hops(k=3, decay=0.5)`, `Paths(length=3)`, `Tuples(k=3, s=1)`.
    weights : None, the graph's own weights; "uniform"; "symmetric", divided by the roots of both ends' degrees. A
        diffusion walks along them: the random walk of the first two, D^-½ A D^-½ for the third.
    teleport : the first layer stands on walked features, and the map of these is a block of the output: the mean of
        the rows of X over the whole graph, weighted by where a walk from the node ends that ends with this probability
        at each step (personalised PageRank). None: it stands on ψ_0, and there is no such block, as in any case where
        members are subgraphs, where X holds counts for `family="multinomial"`, and with `attention="reference"`.
        Where neighbours differ more than they agree (heterophily), None may serve better.
    undirected : add the reverse of every edge.
    structure : features for `X=None`: "projection", "degree" or "spectral".
    kernel : "exp" or "identity" (φ itself; widths then grow by p per layer).
    bandwidth : σ of the exponential kernel.
    block_weights : one weight per block in Eq. 2: ψ_0, the walked features if there are any, ψ_1 … ψ_T; 0 leaves a
        block out. None weighs all equally.
    max_samples : most points that k-means looks at.
    device : "cpu", "cuda" or "cuda:1". On a card the whole fit and transform run there; X may be a tensor on it (so is
        the result then), or a NumPy or CSR matrix, which is read in blocks. Random draws differ from the CPU's.
    backend : None chooses; "numba" and "scipy" take NumPy arrays, "torch" and "triton" (CUDA) tensors.
    precision : of products on a card: "float32"; "tf32", factors rounded to 10 bits; "bf16", the same with the points
        between layers kept in 8 bits, half the memory. Sums are float32 always. On the CPU the type of X is kept.
    random_state : seed; every layer has its own stream.
    n_jobs : threads; None uses every core. The result has the same bits at any number.
    verbose : show progress bars. A callable `verbose(title, steps)` shows the progress in its own way: it returns a
        context manager with `update(n)`; if it has a method `expect`, that gets the costs of the parts by title first.

    Attributes
    ----------
    stack_ : the fitted input map and layers.
    structural_, structure_seed_ : whether the features came from the graph, and the seed of such features.
    needs_graph_ : whether the fit had a graph, so that `transform` needs one.
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
        n_layers: int = 2,
        n_anchors: int = 4,
        dim: int = 256,
        *,
        normalize: bool = True,
        anchor_method: str = "kmeans",
        n_em_iter: int = 1,
        e_step: str = "posterior",
        column_penalty: float = 1.0,
        attention: str = "posterior",
        variance: float | str = "auto",
        sharpness: float = 0.9,
        prior: float = 0.0,
        counts: bool = False,
        family: str | Family = "gaussian-mixture",
        fisher: str = "approximate",
        tangent: str = "estimate",
        multiset: str | Rule = "neighbourhood",
        weights: str | None = None,
        teleport: float | None = 0.1,
        undirected: bool = False,
        structure: str = "projection",
        kernel: str = "exp",
        bandwidth: float = 1.5,
        block_weights: Any = None,
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
        self.normalize = normalize
        self.anchor_method = anchor_method
        self.n_em_iter = n_em_iter
        self.e_step = e_step
        self.column_penalty = column_penalty
        self.attention = attention
        self.variance = variance
        self.sharpness = sharpness
        self.prior = prior
        self.counts = counts
        self.family = family
        self.fisher = fisher
        self.tangent = tangent
        self.multiset = multiset
        self.weights = weights
        self.teleport = teleport
        self.undirected = undirected
        self.structure = structure
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.block_weights = block_weights
        self.max_samples = max_samples
        self.device = device
        self.backend = backend
        self.precision = precision
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any = None, y: Any = None, *, graph: Any = None) -> FisherEmbedding:
        """Learn the input map, anchors and landmarks from the rows of X and the graph on them.

        X is dense or CSR, (node, feature), or None for structural features of the graph. `graph` is anything that
        `as_graph` takes; None makes every row its own multiset. `y` is not looked at. Row v of X belongs to node v;
        where the nodes of an edge table have ids, the index of a DataFrame X names its rows. For X = None, or beside
        `as_graph(table)`, the rows are those of `as_graph(table).ids`, and so is the index of pandas output
        (`set_output(transform="pandas")`). A graph, or a record of features and a graph, may also be passed as X alone.

        X may be a torch tensor, dense or sparse CSR, on the `device`: then so is what is returned, and `graph` may be
        a (2, E) tensor (or a pair with weights) beside it, or `TensorSets`, which are the multisets themselves.
        """
        check_no_graph(y, X, graph)
        self._fit(X, graph, want_output=False)
        return self

    def fit_transform(self, X: Any = None, y: Any = None, *, graph: Any = None) -> Any:
        """`fit(X, graph=graph).transform(X, graph=graph)`, bit for bit, in one pass."""
        check_no_graph(y, X, graph)
        return self._fit(X, graph, want_output=True)

    @each_warning_once()
    def transform(self, X: Any = None, *, graph: Any = None) -> Any:
        """The embedding of the rows of X: the same graph, a larger one, or another one. Nothing is learned.

        A graph is needed if the fit had one, and must be left out if it had none.
        """
        check_is_fitted(self)
        spec = self._spec()
        X, sets, place, ids = open_door(self, X, graph, fitting=False)
        spec = spec.at(place)
        check_memory(spec, X, sets, want_output=True)
        announce(self.verbose, embedding_costs(spec, X, size_of(sets), fitting=False))
        with one_blas_thread(), place.working(self.n_jobs):
            return self._named(sets.pooled(run_stack(spec, self.stack_, X, sets)), ids)

    @all_or_nothing
    def _fit(self, X: Any, graph: Any, *, want_output: bool) -> Any:
        spec = self._spec()
        words = self._seed_words()
        self.structure_seed_ = words[0]
        X, sets, place, ids = open_door(self, X, graph, fitting=True)
        spec = spec.at(place)
        check_memory(spec, X, sets, want_output=want_output)
        announce(self.verbose, embedding_costs(spec, X, size_of(sets), fitting=True))
        seed = np.random.SeedSequence(words)
        with one_blas_thread(), place.working(self.n_jobs):
            self.stack_, output = fit_stack(spec, X, sets, seed, want_output=want_output)
        return self._named(sets.pooled(output), ids) if want_output else None

    def _spec(self) -> StackSpec:
        """The parameters, checked and with names looked up."""
        _validation.check_device(self.device, self.precision)
        choose_multiset(self.multiset)
        _validation.look_up(WEIGHTS, "edge" if self.weights is None else self.weights, "weights")
        _validation.check_flag(self.undirected, "undirected")
        describe_structure(self.structure)  # an unknown kind is found even where X is given
        n_layers = _validation.check_integer(self.n_layers, "n_layers", least=0, most=_validation.MOST_LAYERS)
        layer = self._layer_spec()
        teleport = self.teleport
        if teleport is not None:
            teleport = _validation.check_number(teleport, "teleport (or None)", least=0.01, most=1.0)
        if not layer.attention.walks or layer.family.support == "counts" or makes_lifted(self.multiset):
            teleport = None
        n_layers += teleport is not None
        return StackSpec(
            layer=layer,
            fit_input=layer.fit_map,
            n_layers=n_layers,
            normalize=_validation.check_flag(self.normalize, "normalize"),
            block_weights=_validation.check_block_weights(self.block_weights, n_layers + 1),
            n_jobs=_validation.check_n_jobs(self.n_jobs),
            progress=progress_bar(self.verbose),
            teleport=teleport,
        )

    def _check_fitted(self) -> None:
        rule = choose_multiset(self.multiset)
        width = rule.n_columns(self.n_features_in_) if isinstance(rule, Tuples) else self.n_features_in_
        check_stack(self._spec(), self.stack_, width, slots_of(self.multiset))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The column names psi0_0, psi0_1, …, walk_0, …, psi1_0, …: block and position in it."""
        check_is_fitted(self)
        spec = self._spec()
        check_same(spec, self.stack_)
        widths, weights = self.stack_.widths, spec.block_weights
        names = [f"psi{t}" for t in range(len(widths))]
        if self.stack_.walk_map is not None:
            names = [names[0], "walk", *names[1:-1]]
        kept = [(name, width) for name, width, weight in zip(names, widths, weights, strict=True) if weight > 0]
        return np.array([f"{name}_{k}" for name, width in kept for k in range(width)], dtype=object)
