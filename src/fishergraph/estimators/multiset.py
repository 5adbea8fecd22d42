"""`FisherSetEmbedding`: one vector for every set of vectors, as a scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fishergraph import _validation
from fishergraph._parallel import one_blas_thread
from fishergraph._warn import each_warning_once
from fishergraph.estimators.base import FisherTransformer, all_or_nothing
from fishergraph.estimators.given import check_no_long_table
from fishergraph.estimators.memory import check_memory
from fishergraph.estimators.model_checks import check_stack
from fishergraph.estimators.progress import progress_bar
from fishergraph.estimators.readout import check_standard, fit_readout, run_readout
from fishergraph.estimators.set_door import open_sets
from fishergraph.estimators.stack import check_same, fit_input_map, input_points
from fishergraph.estimators.stack_spec import Stack, StackSpec
from fishergraph.family import Family
from fishergraph.kernel_map import INPUT_MAPS, KernelMap, StandardMap


class FisherSetEmbedding(FisherTransformer):
    """Embed sets of vectors with the geometry of a statistical manifold, without labels, in one pass.

    A set is a sample from a distribution. It is projected onto a Gaussian mixture by EM that starts at anchors learned
    from the members of all sets; the embedding is the whitened tangent vector φ there (Eq. 13, 18), or a Nyström map ψ
    of it. Sets may have any sizes; their members have no order.

    Parameters
    ----------
    n_anchors : number of mixture components p; 1 is mean pooling, with a prior of 0.
    dim : width of ψ (fewer where the data hold fewer distinct sets); φ has p columns per feature.
    normalize : divide every member by its length, before the input map and after it.
    input_map : what members go through first: "standardize", every feature to mean 0 and variance 1; "identity"; "exp",
        a Nyström map of the exponential kernel, `dim` wide.
    anchor_method : "kmeans"; "spherical" (for unit vectors, so with `normalize`); "em"; "random".
    n_em_iter : EM iterations; 1 is the paper, 0 gives φ = 0.
    e_step : "posterior"; "balanced", every anchor has the same share of every set; "unbalanced", a penalty for it.
    column_penalty : the weight τ of that penalty: 0 is the posterior, a large one is balanced.
    variance : σ² of the components, or "auto": the value at which the mean entropy of the responsibilities is
        `sharpness` · log p.
    sharpness : see `variance`; between 0 (hard assignment) and 1 (no attention at all: mean pooling).
    prior : κ ≥ 0, the weight of an anchor as one more member of its component; 0 is the paper.
    counts : append the soft counts log(1 + mass), which say how much of a set lies near each anchor.
    family, fisher, tangent : as in `FisherEmbedding`; "multinomial" reads the members as they are, without input map.
    kernel : "exp", ψ, or "identity", φ itself.
    bandwidth : σ of the exponential kernel.
    max_samples : most members or sets that k-means looks at.
    device, backend, precision, random_state, n_jobs, verbose : as in `FisherEmbedding`.

    Attributes
    ----------
    stack_ : the fitted input map and the layer over the sets.
    n_features_in_, feature_names_in_ : as in scikit-learn.

    Notes
    -----
    An empty set is a row of zeros. `{x}` and `{x, x}` are told apart by `counts`, and a little by the prior. Weights
    enter the estimates; the anchors are learned from the members as they are. The defaults were chosen by
    cross-validation on digits and documents (docs/decisions.md); accuracy is flat around them.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph import FisherSetEmbedding
    >>> rng = np.random.default_rng(0)
    >>> sets = [rng.normal(size=(n, 3)) for n in (5, 2, 7, 4)]
    >>> FisherSetEmbedding(n_anchors=2, kernel="identity", random_state=0).fit_transform(sets).shape
    (4, 6)
    """

    def __init__(
        self,
        n_anchors: int = 32,
        dim: int = 256,
        *,
        normalize: bool = False,
        input_map: str = "standardize",
        anchor_method: str = "kmeans",
        n_em_iter: int = 1,
        e_step: str = "posterior",
        column_penalty: float = 1.0,
        variance: float | str = "auto",
        sharpness: float = 0.5,
        prior: float = 1.0,
        counts: bool = False,
        family: str | Family = "gaussian-mixture",
        fisher: str = "approximate",
        tangent: str = "estimate",
        kernel: str = "exp",
        bandwidth: float = 0.8,
        max_samples: int = 300_000,
        device: str = "cpu",
        backend: str | None = None,
        precision: str = "float32",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ):
        self.n_anchors = n_anchors
        self.dim = dim
        self.normalize = normalize
        self.input_map = input_map
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
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.max_samples = max_samples
        self.device = device
        self.backend = backend
        self.precision = precision
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, *, weights: Any = None) -> FisherSetEmbedding:
        """Learn the input map, the anchors and the kernel map from the sets.

        X is a list of (member, feature) matrices (NumPy, CSR, tensors or tables), an array (set, member, feature), or a
        pair (points, indptr), in which set k has the points indptr[k] … indptr[k + 1] − 1. A matrix is a set of one
        point per row; a table with a row per member and a column of sets is cut by `groupby` first.
        `weights` has one number per member: an array per set, or a flat one. `y` is not looked at.
        """
        self._fit(X, weights, want_output=False)
        return self

    def fit_transform(self, X: Any, y: Any = None, *, weights: Any = None) -> Any:
        """`fit(X, weights=weights).transform(X, weights=weights)`, bit for bit, in one pass."""
        return self._fit(X, weights, want_output=True)

    @each_warning_once()
    def transform(self, X: Any, *, weights: Any = None) -> Any:
        """The embedding of the sets, (set, column). Nothing is learned; an empty set is a row of zeros."""
        check_is_fitted(self)
        spec = self._spec()
        check_same(spec, self.stack_)
        check_no_long_table(X)
        X, sets, place, name_row = open_sets(self, X, weights, fitting=False)
        spec = spec.at(place)
        check_memory(spec, X, sets, want_output=True)
        with one_blas_thread(), place.working(self.n_jobs):
            stack = self.stack_.moved(lambda array: place.put(array, X.dtype))
            points = _points(spec, stack.input_map, X, sets, name_row)
            return run_readout(spec, stack.layers[0], points, sets, dtype=X.dtype)

    @all_or_nothing
    def _fit(self, X: Any, weights: Any, *, want_output: bool) -> Any:
        spec = self._spec()
        seed = np.random.SeedSequence(self._seed_words())
        check_no_long_table(X)
        X, sets, place, name_row = open_sets(self, X, weights, fitting=True)
        spec = spec.at(place)
        check_memory(spec, X, sets, want_output=want_output)
        with one_blas_thread(), place.working(self.n_jobs):
            first, second = (place.stream(child) for child in seed.spawn(2))
            input_map, _ = fit_input_map(spec, X, first)
            points = _points(spec, input_map, X, sets, name_row)
            layer, output = fit_readout(spec, points, sets, second, dtype=X.dtype, want_output=want_output)
            self.stack_ = Stack(input_map, (layer,)).moved(place.fetch)
        return output

    def _spec(self) -> StackSpec:
        """The parameters, checked and with names looked up: a stack of one layer, of which the points are not kept."""
        _validation.check_device(self.device, self.precision)
        return StackSpec(
            layer=self._layer_spec(),
            n_layers=1,
            normalize=_validation.check_flag(self.normalize, "normalize"),
            block_weights=(0.0, 1.0),
            fit_input=_validation.look_up(INPUT_MAPS, self.input_map, "input_map"),
            n_jobs=_validation.check_n_jobs(self.n_jobs),
            progress=progress_bar(self.verbose),
        )

    def _check_fitted(self) -> None:
        check_stack(self._spec(), self.stack_, self.n_features_in_, slots=1)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The column names phi_0, phi_1, …, or psi_0, psi_1, … with a kernel map."""
        check_is_fitted(self)
        name = "phi" if self.kernel == "identity" else "psi"
        return np.array([f"{name}_{k}" for k in range(self.stack_.widths[-1])], dtype=object)


def _points(spec: StackSpec, input_map: KernelMap, X: Any, sets: Any, name_row: Callable[[int], str]) -> Any:
    """The members as the points of the layer; fit may have seen numbers of another size."""
    points = input_points(spec, input_map, X)
    if isinstance(input_map, StandardMap) and not spec.reads_counts and sets.n_entries:
        check_standard(spec, points, name_row)
    return points
