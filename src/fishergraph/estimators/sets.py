"""`FisherSetEmbedding`: one vector for every set of vectors, as a scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from array_api_compat import array_namespace
from sklearn.utils.validation import check_is_fitted

from fishergraph import _arrays, _validation
from fishergraph._arrays import is_table
from fishergraph._parallel import one_blas_thread
from fishergraph._progress import Verbose, costing
from fishergraph._typing import Array, DType, RandomState, Rng, Rows, Sets
from fishergraph._warn import each_warning_once
from fishergraph.costs import check_memory, layer_costs, stack_costs
from fishergraph.device import Device, choose_device, moved
from fishergraph.em.settings import EM
from fishergraph.estimators.arguments import check_no_long_table
from fishergraph.estimators.base import FisherTransformer, all_or_nothing, check_unchanged, make_layer
from fishergraph.estimators.inputs import InputSettings
from fishergraph.estimators.long_table import GroupsLike, by_groups
from fishergraph.estimators.model_checks import check_layer, check_stack, check_unit_spread
from fishergraph.estimators.set_input import SetInput, SetsLike, WeightsLike, read_sets
from fishergraph.estimators.state import ModelState, encoder_part
from fishergraph.estimators.table_input import fit_members
from fishergraph.family import Family, GaussianMixture
from fishergraph.kernel_map import INPUT_MAPS, Identity, Kernel, Nystrom, Standardize, StandardMap, choose_kernel
from fishergraph.layer import Blocks, Layer, Run
from fishergraph.ops.engine import array_engine
from fishergraph.passes import Pass
from fishergraph.stack import Stack

_PARAMETERS = {
    "layer.n_anchors": "n_anchors",
    "layer.dim": "dim",
    "layer.family": "family",
    "layer.em": "em",
    "layer.kernel": "kernel",
    "layer.counts": "counts",
    "input_kernel": "input_map",
    "normalize": "normalize",
}


class FisherSetEmbedding(FisherTransformer):
    """Embed sets of vectors, without labels, in one pass.

    A set is a sample from a distribution. It is projected onto a mixture by EM that starts at anchors learned from the
    members of all sets; the embedding is the whitened tangent vector φ there (Eq. 13, 18), or a kernel map ψ of it.
    Sets may have any sizes; their members have no order.

    Parameters
    ----------
    n_anchors : int, default=32
        Number of mixture components p; 1 is mean pooling, with a prior of 0.
    dim : int, default=256
        Width of ψ; fewer if the data hold fewer distinct sets. φ has p columns per feature.
    input_map : {"standardize", "identity", "exp"} or component, default="standardize"
        The map of every member before the mixture: every feature with mean 0 and variance 1, none, or a Nyström map
        `dim` wide.
    family : str or component, default=GaussianMixture(sharpness=0.5)
        The manifold; see `FisherEmbedding`. "multinomial" reads the members as they are, without input map.
    em : EM, default=EM(prior=1.0)
        E-step, iterations, prior, and how anchors are learned.
    kernel : {"exp", "identity"} or component, default=Nystrom(bandwidth=0.8)
        The map ψ, or φ itself.
    normalize : bool, default=False
        Divide every member by its length, before the input map and after it.
    counts : bool, default=False
        Append the soft counts log(1 + mass), which say how much of a set lies near each anchor.
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
        The fitted input map.
    layer_ : Layer
        The fitted layer over the sets.
    n_features_in_ : int
        Number of features of a member.
    n_samples_fit_ : int
        Number of sets of the fit.
    feature_names_in_ : ndarray of str
        Their names, if the sets were tables.
    encoder_ : TableEncoder or None
        The encoder of a long table with categories, dates, words or missing values, which `groups` names.

    See Also
    --------
    FisherEmbedding : Embed the nodes of a graph.
    FisherGraphEmbedding : Embed whole graphs.

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

    _chosen: ClassVar[dict[str, Any]] = {
        **FisherTransformer._chosen,
        "input_map": partial(choose_kernel, kinds=INPUT_MAPS, name="input_map"),
    }

    def __init__(
        self,
        n_anchors: int = 32,
        dim: int = 256,
        *,
        input_map: str | Kernel = "standardize",
        family: str | Family = GaussianMixture(sharpness=0.5),
        em: EM | None = EM(prior=1.0),
        kernel: str | Kernel = Nystrom(bandwidth=0.8),
        normalize: bool = False,
        counts: bool = False,
        device: str | Device = "cpu",
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: Verbose = False,
    ):
        self.n_anchors = n_anchors
        self.dim = dim
        self.input_map = input_map
        self.family = family
        self.em = em
        self.kernel = kernel
        self.normalize = normalize
        self.counts = counts
        self.device = device
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: SetsLike, y: object = None, *, weights: WeightsLike = None, groups: GroupsLike = None) -> Self:
        """Learn the input map, the anchors and the kernel map from the sets.

        Parameters
        ----------
        X : list of matrices of shape (n_members, n_features)
            The sets: NumPy, CSR, tensors or tables. Also an array (set, member, feature), or a pair (points, indptr),
            in which set k has the points indptr[k] … indptr[k + 1] − 1. A matrix is a set of one point per row.
        y : ignored
            Present for scikit-learn's API.
        weights : list of arrays, or array, optional
            One number per member: an array per set, or a flat one. With `groups` also the name of a column.
        groups : str or array, optional
            X is a long table, with one row per member, and this is the name of the column that says which set a row
            belongs to, or the group of every row. The sets are in the order in which their groups first appear; see
            `group_sets`. Columns that are no complete numbers are encoded. Results that are pandas tables have the
            groups as their index.

        Returns
        -------
        FisherSetEmbedding
            The fitted estimator.
        """
        self._fit(X, weights, groups, want_output=False)
        return self

    def fit_transform(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, X: SetsLike, y: object = None, *, weights: WeightsLike = None, groups: GroupsLike = None
    ) -> Any:
        """Fit, and return the embedding of the same sets, in one pass.

        Parameters
        ----------
        X, y, weights, groups : list of matrices, ignored, list of arrays, str or array
            See `fit`.

        Returns
        -------
        array of shape (n_sets, n_columns)
            One row per set.
        """
        return self._fit(X, weights, groups, want_output=True)

    @each_warning_once()
    def transform(self, X: SetsLike, *, weights: WeightsLike = None, groups: GroupsLike = None) -> Any:
        """Return the embedding of the sets; nothing is learned.

        An empty set is a row of zeros.

        Parameters
        ----------
        X, weights, groups : list of matrices, list of arrays, str or array
            See `fit`.

        Returns
        -------
        array of shape (n_sets, n_columns)
            One row per set.
        """
        check_is_fitted(self)
        X, weights, ids = self._grouped(X, weights, groups, fitting=False)
        rows, sets, workspace, name_row = self._prepared(X, weights)
        check_memory(_with_layer(self.stack_), rows, sets, workspace, want_output=True)
        run = self._run(workspace, self.layer_.em, partial(_costs, self.stack_, rows, sets, fitting=False))

        def put(array: np.ndarray) -> Any:
            return workspace.put(array, rows.dtype)

        with one_blas_thread(), workspace.working(self.n_jobs):
            stack, layer = moved((self.stack_, self.layer_), put)
            points = _points(Pass(stack, rows, sets, run, keep_last=True), name_row)
            Z = written(layer.over(points, sets, run), sets.n_sets, run, rows.dtype, title="sets")
        return self._named(Z, ids)

    @all_or_nothing
    def _fit(self, X: SetsLike, weights: WeightsLike, groups: GroupsLike, *, want_output: bool) -> Any:
        settings = self._settings()
        X, weights, ids = self._grouped(X, weights, groups, fitting=True)
        seeds = np.random.SeedSequence(self._seed_words()).spawn(2)
        rows, sets, workspace, name_row = self._read(X, weights, fitting=True)
        self.n_samples_fit_ = sets.n_sets
        check_memory(_with_layer(settings), rows, sets, workspace, want_output=want_output)
        run = self._run(workspace, settings.layer.em, partial(_costs, settings, rows, sets, fitting=True))
        options: dict[str, Any] = {"title": "sets", "want_output": want_output}
        with one_blas_thread(), workspace.working(self.n_jobs):
            first, second = map(workspace.stream, seeds)
            inputs = Pass(settings, rows, sets, run, streams=[first], keep_last=True)
            points = _points(inputs, name_row)
            layer, output = fit_layer(settings.layer, points, sets, run, second, rows.dtype, **options)
            self.stack_, self.layer_ = moved((inputs.stack, layer), workspace.fetch)
        return self._named(output, ids)

    def _grouped(self, X: SetsLike, weights: WeightsLike, groups: GroupsLike, *, fitting: bool) -> tuple[Any, Any, Any]:
        """The sets, the weights of their members and the groups; a fit keeps the encoder of a long table, or None."""
        if fitting:
            self.encoder_ = None
        sets, weights, ids = by_groups(X, weights, groups)
        if groups is None or not is_table(sets[0]):
            return sets, weights, ids
        if fitting:
            self.encoder_, rows = fit_members(sets[0])
        else:
            rows = sets[0] if self.encoder_ is None else self.encoder_.transform(sets[0])
        return (rows, sets[1]), weights, ids

    def _settings(self) -> Stack:
        """The parameters as a stack without layers, whose `layer` is the one over the sets."""
        choose_device(self.device)
        normalize = _validation.check_flag(self.normalize, "normalize")
        return Stack(
            layer=make_layer(
                self.n_anchors,
                self.dim,
                family=self.family,
                em=self.em,
                kernel=self.kernel,
                unit=normalize,
                reading="both" if _validation.check_flag(self.counts, "counts") else "means",
            ),
            input_kernel=choose_kernel(self.input_map, INPUT_MAPS, "input_map"),
            walk=None,
            n_layers=0,
            normalize=normalize,
            block_weights=(1.0,),
        )

    def _prepared(self, X: SetsLike, weights: WeightsLike) -> SetInput:
        """What `transform` reads."""
        check_unchanged(self.stack_, self._settings(), _PARAMETERS)
        return self._read(X, weights, fitting=False)

    def _read(self, X: SetsLike, weights: WeightsLike, *, fitting: bool) -> SetInput:
        """The sets, validated, in the workspace of the run."""
        settings = self._settings()
        inputs = InputSettings(
            family=settings.layer.family,
            normalize=settings.normalize,
            device=choose_device(self.device),
            n_jobs=_validation.check_n_jobs(self.n_jobs),
            check_columns=partial(self._check_columns, fitting=fitting),
        )
        return read_sets(X, weights, inputs, None if fitting else self.n_features_in_)

    def _state(self) -> dict[str, Any]:
        return {"stack": self.stack_, "layer": self.layer_, **encoder_part(self.encoder_)}

    def _restore(self, state: ModelState) -> None:
        settings = self._settings()
        self.encoder_ = state.encoder(self.n_features_in_)
        self.stack_ = state.stack("stack", settings)
        self.layer_ = state.layer("layer", settings.layer)
        check_stack(self.stack_, self.n_features_in_, slots=1)
        points = self.n_features_in_ if settings.reads_counts else self.stack_.widths[0]
        check_layer(self.layer_, points, "layer")
        if settings.unit_points or isinstance(settings.input_kernel, Standardize):
            check_unit_spread(self.layer_.theta, "layer")

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        """Return the names of the columns: phi_0, phi_1, ….

        With a kernel map they are psi_0, psi_1, ….

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
        name = "phi" if isinstance(self.layer_.kernel, Identity) else "psi"
        return np.array([f"{name}_{k}" for k in range(self.layer_.n_outputs)], dtype=object)


def set_input(model: FisherSetEmbedding, X: SetsLike, weights: WeightsLike) -> tuple[Stack, SetInput, Any]:
    """The fitted stack with its layer, what `transform` reads, and the members as points, in host memory."""
    check_is_fitted(model)
    on_host = copy(model).set_params(device="cpu")
    with one_blas_thread(), array_engine():
        check_no_long_table(X)
        read = on_host._prepared(X, weights)  # pyright: ignore[reportPrivateUsage]
        run = Run(n_jobs=_validation.check_n_jobs(model.n_jobs))
        points = _points(Pass(model.stack_, read.points, read.sets, run, keep_last=True), read.name_row)
    return replace(_with_layer(model.stack_), layers=(model.layer_,)), read, points


def _with_layer(stack: Stack) -> Stack:
    """The stack with the layer over the sets as its only block: what a run needs memory for."""
    return replace(stack, n_layers=1, block_weights=(0.0, 1.0))


def _points(inputs: Pass, name_row: Callable[[int], str]) -> Any:
    """The members as the points of the layer, which must lie in the range that fit has seen."""
    stage = next(inputs.stages())  # its points are gone once the next one is asked for
    stage.run(inputs.run)
    assert stage.points is not None
    stack = inputs.stack
    if isinstance(stack.input_map, StandardMap) and not stack.reads_counts and inputs.sets.n_entries:
        check_standard(stack.layer, stage.points, name_row, normalize=stack.normalize)
    return stage.points


def check_standard(layer: Layer, points: Array, name_row: Callable[[int], str], *, normalize: bool) -> None:
    """Raise if standardised points leave the range of a layer: fit has seen numbers of another size."""
    squares = not normalize and layer.family.n_statistics(2) > 2
    digits = 140 if array_namespace(points).finfo(points.dtype).bits == 64 else 14
    bound = 10.0 ** (digits // 2 if squares else digits)
    _arrays.check_within(points, "features, standardised as in fit,", bound, name_row=name_row)


def fit_layer(
    layer: Layer, points: Array, sets: Sets, run: Run, rng: Rng, dtype: DType, *, title: str, want_output: bool
) -> tuple[Layer, Any]:
    """A layer learned from points and the sets over them, and its output, (set, ψ), if it is wanted."""
    with costing(run.progress, f"learning {title}", run.costs.get(f"learning {title}", 1.0)):
        fitted, blocks = layer.fit(points, sets, run, rng)
    return fitted, written(blocks, sets.n_sets, run, dtype, title=title) if want_output else None


def written(blocks: Blocks, n_sets: int, run: Run, dtype: DType, *, title: str) -> Any:
    """ψ of every set, (set, ψ), filled block by block."""
    output = run.workspace.empty_output((n_sets, blocks.kernel_map.n_outputs), dtype)

    def write(rows: slice, block: Array) -> None:
        output[rows] = block

    blocks.write(write, run, title)
    return run.workspace.result(output)


def _costs(stack: Stack, X: Rows, sets: Sets, *, fitting: bool) -> dict[str, float]:
    """The cost of every part of a call, by its title."""
    points = X.shape[1] if stack.reads_counts else stack.asked_widths(X.shape[1], sets)[0]
    inputs = stack_costs(stack, X, sets, fitting=fitting)
    return {**inputs, **layer_costs(stack.layer, sets, points, "sets", fitting=fitting)}
