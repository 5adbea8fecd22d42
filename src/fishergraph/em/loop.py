"""`em_means`, the one hot primitive: the means of every multiset after EM that starts at the anchors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace, is_torch_array
from array_api_compat import device as device_of

from fishergraph._arrays import as_floats, check_finite_rows, check_heaviest, check_in_range, check_squares
from fishergraph._errors import InputError, InputTypeError
from fishergraph._parallel import block_rows, map_blocks, row_blocks
from fishergraph._repr import short_repr
from fishergraph._validation import MOST_ITERATIONS, check_integer, check_number
from fishergraph._warn import each_warning_once
from fishergraph.device import device_kind
from fishergraph.em.e_step import e_step_slack, posterior
from fishergraph.multiset import Multisets
from fishergraph.ops import Engine, Responsibilities, choose_engine

# Rows of a block whose means are written straight to where they stay.
_ROWS = 2048


class EMMeans(NamedTuple):
    """means (set, anchor, feature), and mass (set, anchor): Σ_u a_vu α_uj of the last E-step."""

    means: Any
    mass: Any

    __repr__ = short_repr


def first_responsibilities(
    points: Any,
    anchors: Any,
    variance: float,
    *,
    log_responsibilities: Callable[[Any], Any] | None = None,
    n_jobs: int | None = None,
) -> Responsibilities:
    """The responsibilities of all points at the anchors, by row blocks, (point, anchor).

    They are the posterior, or `log_responsibilities(points)` of a family that has its own.
    """
    if points.shape[1] != anchors.shape[1]:  # compiled loops would read past the shorter ones
        raise InputError(
            parameter="points",
            expected=f"be as wide as the anchors, {anchors.shape[1]}",
            got=f"{points.shape[1]} columns",
            advice="fit again where parameters were changed after the fit",
        )
    xp = array_namespace(points, anchors)
    log = xp.empty((points.shape[0], len(anchors)), dtype=sum_dtype(points, anchors), device=device_of(points))
    plain = xp.empty_like(log)

    def fill(rows: slice) -> None:
        if log_responsibilities is None and isinstance(points, np.ndarray):
            _compiled_posterior(points[rows], anchors, variance, log[rows], plain[rows])
            return
        block = xp.astype(points[rows], log.dtype, copy=False)
        own = posterior(block, anchors, variance) if log_responsibilities is None else log_responsibilities(block)
        log[rows] = own
        plain[rows] = xp.exp(log[rows])

    size = block_rows(device_kind(points), 4 * points.shape[1], 4096)
    map_blocks(fill, row_blocks(points.shape[0], size), n_jobs=n_jobs)
    return Responsibilities(log, plain)


def _compiled_posterior(
    points: np.ndarray, anchors: np.ndarray, variance: float, log: np.ndarray, plain: np.ndarray
) -> None:
    """The same in one pass over the points."""
    from fishergraph.ops.posterior.numba import posterior_block

    posterior_block(points, anchors, variance, log, plain)


def sum_dtype(points: Any, anchors: Any) -> Any:
    """The dtype means are summed in: that of the points, or of the anchors where points are stored in 16 bits."""
    return points.dtype if array_namespace(points).finfo(points.dtype).bits >= 32 else anchors.dtype


def _empty_means(points: Any, anchors: Any, n_sets: int) -> EMMeans:
    """Means and masses of so many multisets, not yet filled."""
    shape = (n_sets, *anchors.shape)
    if isinstance(points, np.ndarray):  # the lines below take a quarter of all that a row block spends in Python
        dtype = points.dtype if points.itemsize >= 4 else anchors.dtype
        return EMMeans(np.empty(shape, dtype), np.empty(shape[:2], dtype))
    xp, dtype, device = array_namespace(points, anchors), sum_dtype(points, anchors), device_of(points)
    return EMMeans(*(xp.empty(s, dtype=dtype, device=device) for s in (shape, shape[:2])))


def block_means(
    engine: Engine,
    points: Any,
    responsibilities: Responsibilities,
    sets: Any,
    anchors: Any,
    *,
    variance: float = 1.0,
    prior: float = 0.0,
    n_em_iter: int = 1,
    slack: float = math.inf,
    out: EMMeans | None = None,
) -> EMMeans:
    """`em_means` of one row block. An empty multiset, or no iteration at all, gives the anchors and no mass."""
    if out is None:
        out = _empty_means(points, anchors, sets.n_sets)
    means, mass = out
    if n_em_iter == 0:
        means[:], mass[:] = anchors, 0
    else:
        engine.em_block(
            points,
            responsibilities,
            sets,
            anchors,
            variance=variance,
            prior=prior,
            n_em_iter=n_em_iter,
            means=means,
            mass=mass,
            **({} if slack == math.inf else {"slack": slack}),
        )
    return out


def em_means(
    points: Any,
    multisets: Any,
    anchors: Any,
    *,
    variance: float = 1.0,
    prior: float = 0.0,
    n_em_iter: int = 1,
    e_step: str = "posterior",
    column_penalty: float = 1.0,
    bias: Any = None,
    n_jobs: int | None = None,
) -> EMMeans:
    """Means of every multiset after EM that starts at the anchors (Eq. 14, 17).

    One iteration gives μ_vj = (κ w_j + Σ_u a_vu α_uj x_u) / (κ + Σ_u a_vu α_uj).

    Parameters
    ----------
    points : array of shape (n_points, n_features)
        NumPy array or tensor, float32 or float64.
    multisets : Multisets
        The sets over these points; `TensorSets` for tensors.
    anchors : array of shape (n_anchors, n_features)
        The parameters θ_0.
    variance : float, default=1.0
        σ² of every component.
    prior : float, default=0.0
        κ, the weight of the anchor as one more member of every component; 0 is the paper.
    n_em_iter : int, default=1
        The number of iterations.
    e_step : {"posterior", "balanced", "unbalanced"}, default="posterior"
        "balanced" gives every anchor the same mass in every set, "unbalanced" penalises deviations from that.
    column_penalty : float, default=1.0
        τ of the unbalanced E-step.
    bias : tensor of shape (n_anchors,), optional
        Log-weights of the components; for tensors only.
    n_jobs : int, optional
        Threads; None uses every core.

    Returns
    -------
    EMMeans
        `means` of shape (n_sets, n_anchors, n_features) and `mass` of shape (n_sets, n_anchors). Tensors give tensors,
        differentiable in points, anchors, bias and the weights of `TensorSets`.

    See Also
    --------
    em_estimate : The same for any family.
    fisher_embedding : Tangent vectors of the means.

    Notes
    -----
    Layers never call this on all rows at once; they run the same engine per row block. `config_context` names the
    engine.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph import em_means, neighbourhoods
    >>> points, path = np.array([[0.0], [1.0], [4.0]]), np.array([[0, 1], [1, 2]])
    >>> em_means(points, neighbourhoods(path), points[:1]).means.ravel()
    array([0. , 0.5, 2.5])
    """
    variance = check_number(variance, "variance", strict=True)
    prior = check_number(prior, "prior")
    n_em_iter = check_integer(n_em_iter, "n_em_iter", least=0, most=MOST_ITERATIONS)
    slack = e_step_slack(e_step, column_penalty)
    if is_torch_array(points):
        from fishergraph.ops.iterate.torch import checked_em_means

        found = checked_em_means(
            points, multisets, anchors,
            variance=variance, prior=prior, n_em_iter=n_em_iter, slack=slack, bias=bias,
        )  # fmt: skip
        return EMMeans(*found)
    return _array_means(points, multisets, anchors, variance, prior, n_em_iter, slack, bias, n_jobs)


@each_warning_once()
def _array_means(
    points: Any, multisets: Multisets, anchors: Any, variance: float, prior: float, n_em_iter: int, slack: float,
    bias: Any, n_jobs: int | None,
) -> EMMeans:  # fmt: skip
    """`em_means` of NumPy arrays, row block by row block."""
    if bias is not None:
        raise InputError("bias is for tensors, got NumPy points; pass torch tensors, or leave bias=None.")
    points = as_points(points, "points")
    with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, which the next lines refuse
        anchors = as_points(anchors, "anchors").astype(points.dtype, copy=False)
    check_squares(points, "points", over=variance)
    check_squares(anchors, "anchors", over=variance)
    check_in_range(variance, points.dtype, "variance")
    check_in_range(prior, points.dtype, "prior")
    if anchors.shape[0] == 0 or anchors.shape[1] != points.shape[1]:
        raise InputError(
            parameter="anchors",
            expected=f"have the shape (anchor, {points.shape[1]}) with at least one anchor",
            got=f"{anchors.shape}",
            advice="learn them from these points with learn_anchors",
        )
    check_sets(multisets, points.shape[0])
    check_heaviest(multisets.weights, points.dtype)
    chosen = choose_engine(n_em_iter=n_em_iter, slack=slack, tensors=False)
    responsibilities = first_responsibilities(points, anchors, variance, n_jobs=n_jobs)
    means = np.empty((multisets.n_sets, *anchors.shape), points.dtype)
    mass = np.empty((multisets.n_sets, anchors.shape[0]), points.dtype)

    def fill(rows: slice) -> None:
        block_means(
            chosen,
            points,
            responsibilities,
            multisets.block(rows),
            anchors,
            variance=variance,
            prior=prior,
            n_em_iter=n_em_iter,
            slack=slack,
            out=EMMeans(means[rows], mass[rows]),
        )

    map_blocks(fill, row_blocks(multisets.n_sets, _ROWS), n_jobs=n_jobs)
    return EMMeans(means, mass)


def check_sets(sets: Multisets, n_rows: int) -> None:
    """Raise unless these are multisets over so many rows; the record has checked its arrays."""
    if not isinstance(sets, Multisets):
        raise InputTypeError(
            parameter="multisets",
            expected="be Multisets",
            got=f"{type(sets).__name__}",
            advice="pass neighbourhoods(graph)",
        )
    if sets.n_points != n_rows:
        raise InputError(
            f"the multisets are over {sets.n_points} points, got {n_rows} rows; pass the points they were built for."
        )


def as_points(array: Any, name: str) -> np.ndarray:
    """A C-ordered float matrix by the rule of `as_floats`, with finite entries."""
    if sp.issparse(array):
        raise InputTypeError(
            parameter=name,
            expected="be a dense matrix",
            got="a sparse one",
            advice=f"pass {name}.toarray()",
        )
    array = as_floats(array, name)
    if array.ndim != 2:
        raise InputError(
            parameter=name,
            expected="be a matrix of shape (rows, features)",
            got=f"shape {array.shape}",
            advice="reshape it",
        )
    check_finite_rows(array, name)
    return array
