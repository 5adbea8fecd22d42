"""What the arrays of a model file must be: shapes that fit each other, and values that the model could have learned.

Every number is finite already. What is checked here keeps the results finite too: unit landmarks, positive variances,
weights that sum to one, parameters whose squares do not leave their type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fishergraph._typing import Array
from fishergraph._validation import MOST_COLUMNS, check_integer, check_number, check_seed
from fishergraph.axes import Axes, ScaledMap
from fishergraph.estimators.graph_input import PARTS, NodeCode
from fishergraph.family.diagonal_mixture import DiagonalMixtureTheta
from fishergraph.family.gaussian import GaussianTheta
from fishergraph.family.gaussian_mixture import GaussianMixtureTheta
from fishergraph.family.multinomial import MultinomialTheta
from fishergraph.family.theta import theta_sizes
from fishergraph.family.von_mises_fisher import MOST_LENGTH, VonMisesFisherMixture, VonMisesFisherTheta
from fishergraph.kernel_map import Kernel, KernelMap, NystromMap, Standardize, StandardMap
from fishergraph.layer import Layer
from fishergraph.relational import RelationalStack
from fishergraph.relational.stack import Mix
from fishergraph.stack import ColumnMap, Stack
from fishergraph.structural import TELLING_APART, StructureMap

# Lengths of unit vectors, and sums of probabilities, are one up to this.
_SLACK = 1e-3
# The inverse root of a kernel matrix of unit landmarks has no larger entry: its eigenvalues are cut at a millionth.
_MOST_ROOT = 1e4
_MOST_FISHER_ROOT = 1e10
_MOST_COLUMN_WEIGHT = 8.0  # √log n
# Squares of means in units of learned variances are at most a thousand times the number of points.
_MOST_SQUARES = 1e18
# Logarithms of weights are at least this: float32 has no smaller positive number than e^-87.4.
_LEAST_LOG = -90.0


def check_map(kernel_map: KernelMap, name: str) -> None:
    """Raise unless the arrays of a map fit each other and are what such a map learns."""
    if isinstance(kernel_map, NystromMap):
        landmarks = _matrix(kernel_map.landmarks, f"{name}.landmarks")
        _shaped(kernel_map.root, f"{name}.root", landmarks.shape[0], landmarks.shape[0])
        check_number(kernel_map.bandwidth, f"the bandwidth of {name}", least=0.01, most=1e6)
        _check_unit(landmarks, f"{name}.landmarks")
        _check_size(kernel_map.root, f"{name}.root", _MOST_ROOT)
    elif isinstance(kernel_map, StandardMap):
        centre = _flat(kernel_map.centre, f"{name}.centre")
        _shaped(kernel_map.scale, f"{name}.scale", len(centre))
        _check_positive(kernel_map.scale, f"{name}.scale")


def check_theta(theta: object, name: str) -> None:
    """Raise unless the parts of θ_0 fit each other and are parameters of their family."""
    _THETAS[type(theta)](theta, name)


def _check_gaussian_mixture(theta: GaussianMixtureTheta, name: str) -> None:
    anchors = _matrix(theta.anchors, f"{name}.anchors")
    variance = check_number(theta.variance, f"the variance of {name}", strict=True)
    _check_spread(anchors, variance, f"{name}.anchors", _most(anchors) ** 2)  # given, not learned


def _check_diagonal_mixture(theta: DiagonalMixtureTheta, name: str) -> None:
    means = _matrix(theta.means, f"{name}.means")
    _shaped(theta.variances, f"{name}.variances", *means.shape)
    _shaped(theta.origin, f"{name}.origin", means.shape[1])
    _check_weights(theta.log_weights, name, len(means))
    _check_positive(theta.variances, f"{name}.variances")
    _check_spread(means - theta.origin, theta.variances, f"{name}.means")


def _check_gaussian(theta: GaussianTheta, name: str) -> None:
    means = _matrix(theta.means, f"{name}.means")
    d = means.shape[1]
    _shaped(means, f"{name}.means", 1, d)
    _shaped(theta.covariances, f"{name}.covariances", 1, d, d)
    _shaped(theta.origin, f"{name}.origin", d)
    covariance = theta.covariances[0].astype(np.float64)
    _check_size(covariance, f"{name}.covariances", _most(theta.covariances))
    values = np.linalg.eigvalsh(covariance)
    even = np.abs(covariance - covariance.T).max() <= _SLACK * np.abs(covariance).max()
    if not even or not 1e-6 * _SLACK * values[-1] < values[0]:
        raise ValueError(f"{name}.covariances must be symmetric and positive definite; get the file again.")
    _check_spread(means - theta.origin, values[0], f"{name}.means")


def _check_von_mises_fisher(theta: VonMisesFisherTheta, name: str) -> None:
    means = _matrix(theta.means, f"{name}.means")
    _check_weights(theta.log_weights, name, len(means))
    _shaped(theta.concentrations, f"{name}.concentrations", len(means))
    if not np.linalg.norm(means, axis=1).max() <= MOST_LENGTH + 1e-5:
        raise ValueError(f"{name}.means must be shorter than one; get the file again.")
    expected = VonMisesFisherMixture().concentrations(theta._replace(concentrations=None))
    if not np.allclose(np.asarray(theta.concentrations), expected, rtol=_SLACK, atol=_SLACK):
        raise ValueError(f"{name}.concentrations must be those of the means; get the file again.")


def _check_multinomial(theta: MultinomialTheta, name: str) -> None:
    probabilities = _matrix(theta.probabilities, f"{name}.probabilities")
    _check_weights(theta.log_weights, name, len(probabilities))
    check_number(theta.trials, f"the trials of {name}", strict=True, most=_most(probabilities))
    sums = probabilities.sum(axis=1, dtype=np.float64)
    if probabilities.min() < 0 or np.abs(sums - 1).max() > _SLACK:
        raise ValueError(f"{name}.probabilities must be positive and sum to one; get the file again.")


_THETAS: dict[type, Any] = {
    GaussianMixtureTheta: _check_gaussian_mixture,
    DiagonalMixtureTheta: _check_diagonal_mixture,
    GaussianTheta: _check_gaussian,
    VonMisesFisherTheta: _check_von_mises_fisher,
    MultinomialTheta: _check_multinomial,
}


# --- parts that fit each other ---------------------------------------------------------------------------


def check_axes(axes: Axes, name: str) -> None:
    """Raise unless the parts of the axes fit each other."""
    directions = _matrix(axes.directions, f"{name}.directions")
    weights = _shaped(axes.column_weights, f"{name}.column_weights", directions.shape[1])
    spread = _shaped(axes.spread, f"{name}.spread", directions.shape[0])
    _check_size(weights, f"{name}.column_weights", _MOST_COLUMN_WEIGHT)
    for part, array in {"directions": directions, "spread": spread}.items():
        _check_size(array, f"{name}.{part}", _most(directions) ** 0.5)


def check_column_map(column_map: ColumnMap, name: str) -> None:
    """Raise unless the parts of a map of columns fit each other."""
    centre = _shaped(column_map.centre, f"{name}.centre", 1, None)
    _check_size(centre, f"{name}.centre", _most(centre) ** 0.5)
    width = centre.shape[1]
    if isinstance(column_map, ScaledMap):
        _check_size(_shaped(column_map.scale, f"{name}.scale", width), f"{name}.scale", _most(centre) ** 0.5)
        _check_inputs(column_map.kernel_map, name, width)
    else:
        _check_size(_shaped(column_map.rotation, f"{name}.rotation", width, None), f"{name}.rotation", 1 + _SLACK)


def check_structure(structure: StructureMap, name: str) -> None:
    """Raise unless what structural columns learned fits its settings."""
    keys = structure.keys
    if keys.dtype != np.uint64 or keys.ndim != 1 or not len(np.unique(keys)) == len(keys) > 0:
        raise ValueError(f"{name}.keys must be distinct 64-bit integers, one for each node; get the file again.")
    check_integer(structure.width, f"the width of {name}", least=1, most=MOST_COLUMNS)
    check_seed(structure.seed, f"the seed of {name}")
    for kind, factors in zip(structure.structure.kinds, structure.factors, strict=True):
        if factors is not None:
            basis = _shaped(factors.basis, f"{name}.{kind}.basis", len(keys), None)
            values = _shaped(factors.values, f"{name}.{kind}.values", basis.shape[1])
            for part, array in {"basis": basis, "values": values}.items():
                _check_size(array, f"{name}.{kind}.{part}", _most(basis) ** 0.5)


def check_stack(stack: Stack, width: int, slots: int) -> None:
    """Raise unless the maps and layers of a stack fit its settings and each other, for rows of that width.

    `slots` is how many points a member has side by side.
    """
    input_map = stack.input_map
    assert input_map is not None
    if (stack.axes is not None) != stack.averages_features or len(stack.layers) != stack.n_layers:
        raise ValueError(f"the file must have the stages {', '.join(stack.names)}, got others; get the file again.")
    _check_kind(stack.input_kernel.accepts(input_map), stack.input_kernel, input_map, "input")
    _check_inputs(input_map, "input", width)
    points = width if stack.reads_counts else input_map.n_outputs
    if stack.axes is not None:
        _check_inputs(stack.axes, "axes", width)
    for name, column_map in zip(stack.column_names, stack.columns, strict=True):
        _check_columns(stack, name, column_map)
    unit = stack.unit_points or isinstance(input_map, StandardMap)
    for t, layer in enumerate(stack.layers, 1):
        check_layer(layer, points * slots, f"layer{t}")
        if unit:
            check_unit_spread(layer.theta, f"layer{t}")
        points = layer.n_outputs


def check_relational(stack: RelationalStack, width: int, slots: int) -> None:
    """Raise unless the maps, layers and axes of a relational stack fit its types, relations and each other.

    `width` is the number of features of all types together.
    """
    layout, columns, mixes = stack.layout, stack.of_columns(), max(stack.n_layers - 1, 0)
    whole = len(stack.inputs) == len(layout.types) and len(stack.relation_layers) == len(layout.relations)
    whole &= len(stack.mixes) == len(layout.types) and all(len(made) == mixes for made in stack.mixes)
    whole &= all(len(layers) == stack.n_layers for layers in stack.relation_layers)
    if not whole or (stack.axes is not None) != stack.averages_features:
        raise ValueError(f"the file must have the stages {', '.join(stack.names)}, got others; get the file again.")
    points = {}
    for one, input_map in zip(layout.types, stack.inputs, strict=True):
        _check_kind(stack.input_kernel.accepts(input_map), stack.input_kernel, input_map, one.name)
        _check_inputs(input_map, one.name, one.n_features or input_map.n_inputs)
        points[one.name] = input_map.n_outputs
    if stack.axes is not None:
        _check_inputs(stack.axes, "axes", width)
    for name, column_map in zip(columns.column_names, columns.columns, strict=True):
        _check_columns(columns, name, column_map)
    for t in range(stack.n_layers):
        after = {key: layers[t] for key, layers in zip(layout.relations, stack.relation_layers, strict=True)}
        for key, layer in after.items():
            check_layer(layer, points[key[0]] * slots, name := f"layer{t + 1} of {layout.labels[key]}")
            if stack.unit_points:
                check_unit_spread(layer.theta, name)
        for i, name in enumerate(layout.names if t < mixes else ()):
            widths = [after[key].n_outputs for key in layout.into(name)]
            widths += [points[name]] if layout.keeps_points(name) else []
            points[name] = _mixed_width(stack.mixes[i][t], widths, name)


def _mixed_width(mix: Mix | None, widths: list[int], name: str) -> int:
    """The columns of the points of a type; raises unless their axes fit the parts they are made of."""
    if (mix is None) != (len(widths) == 1) or (mix is not None and len(mix.axes) != len(widths)):
        raise ValueError(f"the points of {name!r} must be made of {len(widths)} parts; get the file again.")
    for width, axes in zip(widths, () if mix is None else mix.axes, strict=False):
        _check_size(_shaped(axes, f"the axes of {name!r}", width, None), f"the axes of {name!r}", 1 + _SLACK)
    return widths[0] if mix is None else sum(axes.shape[1] for axes in mix.axes)


STACK_CHECKS: dict[type, Callable[..., None]] = {Stack: check_stack, RelationalStack: check_relational}


def _check_columns(stack: Stack, name: str, column_map: ColumnMap) -> None:
    """Raise unless a map of columns is of the kind of its stage, and takes what the stage has."""
    maps = name == "walk" or (name != "smooth" and name not in TELLING_APART)
    _check_kind(isinstance(column_map, ScaledMap) == maps, stack.layer.kernel, column_map, name)
    if isinstance(column_map, ScaledMap):
        _check_kind(stack.layer.kernel.accepts(column_map.kernel_map), stack.layer.kernel, column_map.kernel_map, name)
    if name in ("walk", "smooth"):
        assert stack.axes is not None
        _check_inputs(column_map, name, stack.axes.n_outputs)


def check_structural(stack: Stack, structure: StructureMap | None, width: int, n_features: int | None) -> None:
    """Raise unless structural columns are there if they are needed, and are what the stack takes.

    `width` is that of columns that tell nodes apart, `n_features` that of the features if these are structural columns.
    """
    needed = len(stack.structure) > 0 or n_features is not None
    if structure is None or not needed:
        if (structure is not None) != needed:
            words = "structural columns exactly if the model takes them"
            raise ValueError(f"the file must have {words}, got the other; get the file again.")
        return
    first, widths = structure.structure.kinds[0], structure.widths
    if structure.width != width or not all(widths[kind] <= most for kind, most in stack.structure):
        raise ValueError(f"the structural columns must be {width}, got {structure.width}; get the file again.")
    maps = dict(zip(stack.column_names, stack.columns, strict=True))
    for kind, _ in stack.structure:
        _check_inputs(maps[kind], kind, widths[kind])
    if n_features is not None and n_features != widths[first]:
        raise ValueError(f"{first} must have {n_features} columns, got {widths[first]}; get the file again.")


def check_layer(layer: Layer, width: int, name: str) -> None:
    """Raise unless a layer is over points of that width and fits its settings."""
    family, kernel_map = layer.family, layer.kernel_map
    assert kernel_map is not None
    kind: type = family.theta
    if not isinstance(layer.theta, kind):
        raise ValueError(f"{name} must have the parameters of {family!r}, got others; get the file again.")
    n_features = theta_sizes(layer.theta, name)["features"]
    if n_features != width:
        raise ValueError(f"{name} must be over points of {width} columns, got {n_features}; get the file again.")
    _check_kind(layer.kernel.accepts(kernel_map), layer.kernel, kernel_map, name)
    n_anchors = family.mean_statistics(layer.theta).shape[0]
    _check_inputs(kernel_map, name, layer.phi_width(n_anchors, width))
    if (layer.root is None) != (family.fisher != "exact"):
        raise ValueError(f"{name} must have a Fisher matrix exactly if fisher='exact'; get the file again.")
    if layer.root is not None:
        size = family.width(n_anchors, width)
        _shaped(layer.root, f"{name}.fisher_root", size, size)
        _check_size(layer.root, f"{name}.fisher_root", _MOST_FISHER_ROOT)
    counts = isinstance(layer.theta, MultinomialTheta) and family.tangent == "score"
    if counts and not np.asarray(layer.theta.probabilities).all():
        raise ValueError(f"{name}.probabilities must be positive for tangent='score', got 0; get the file again.")


def check_unit_spread(theta: object, name: str) -> None:
    """Raise if variances are smaller than those of distinct points of length about one can be."""
    if isinstance(theta, DiagonalMixtureTheta):
        least, variances = np.asarray(theta.variances).min(), theta.variances
    elif isinstance(theta, GaussianTheta):
        least, variances = np.linalg.eigvalsh(theta.covariances[0].astype(np.float64))[0], theta.covariances
    else:
        return
    bound = 1e-18 if variances.dtype == np.float32 else 1e-36
    if not least >= bound:
        raise ValueError(f"the variances of {name} must be at least {bound:g}, got {least:g}; get the file again.")


def check_code(code: NodeCode) -> None:
    """Raise unless the code of nodes has what its parts need, and nothing else."""
    needs = {"features": "standard", "tags": "tags", "edge-tags": "edge_tags", "degrees": "degrees", "cores": "cores"}
    if not code.parts or len(set(code.parts)) != len(code.parts) or not set(code.parts) <= set(PARTS):
        raise ValueError(f"the parts of the nodes' code must be distinct names of {sorted(PARTS)}; get the file again.")
    for part, field in needs.items():
        value: Any = getattr(code, field)
        if (value is None) == (part in code.parts):
            raise ValueError(f"{field} must be there exactly if nodes enter with {part}; get the file again.")
        if value is None:
            continue
        if part == "features":
            _check_kind(isinstance(value, StandardMap), Standardize(), value, "code")
        elif value.ndim != 1 or len(value) == 0 or not (value[1:] > value[:-1]).all():
            raise ValueError(f"the known {field} must be sorted and distinct, and some; get the file again.")


def code_width(code: NodeCode) -> int:
    """The number of columns that nodes enter with."""
    lists = (code.tags, code.degrees, code.cores, code.edge_tags)
    features = 0 if code.standard is None else code.standard.n_outputs
    return features + sum(len(values) for values in lists if values is not None)


# --- arrays ----------------------------------------------------------------------------------------------


def _matrix(array: object, name: str) -> np.ndarray:
    return _shaped(array, name, None, None)


def _flat(array: object, name: str) -> np.ndarray:
    return _shaped(array, name, None)


def _shaped(array: object, name: str, *shape: int | None) -> np.ndarray:
    """The array, if it holds floats in this shape; None is any length but zero."""
    if isinstance(array, np.ndarray):
        fits = array.dtype in (np.float32, np.float64) and array.ndim == len(shape)
        if fits and all(n == m if m is not None else n > 0 for n, m in zip(array.shape, shape, strict=True)):
            return array
    asked = ", ".join("n" if m is None else str(m) for m in shape)
    got = f"{array.dtype} of {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
    raise ValueError(f"{name} must be floats of shape ({asked}), got {got}; get the file again.")


def _most(array: Array) -> float:
    """A number whose square, and whose products with features, stay in the type."""
    return 1e16 if array.dtype == np.float32 else 1e150


def _least_variance(array: np.ndarray) -> float:
    return 1e-36 if array.dtype == np.float32 else 1e-300


def _check_size(array: Array, name: str, most: float) -> None:
    if not np.abs(np.asarray(array)).max() <= most:
        raise ValueError(f"{name} must lie between -{most:g} and {most:g}, got others; get the file again.")


def _check_unit(rows: np.ndarray, name: str) -> None:
    if not np.linalg.norm(rows.astype(np.float64), axis=1).max() <= 1 + _SLACK:
        raise ValueError(f"{name} must be unit vectors, got longer ones; get the file again.")


def _check_positive(array: Array, name: str) -> None:
    least = float(np.min(np.asarray(array)))
    if not least > 0:
        raise ValueError(f"{name} must be positive, got {least:g}; get the file again.")


def _check_weights(log_weights: object, name: str, n_anchors: int) -> None:
    """Raise unless these are the logarithms of weights that sum to one."""
    logs = _shaped(log_weights, f"{name}.log_weights", n_anchors).astype(np.float64)
    if not logs.min() >= _LEAST_LOG or not logs.max() <= _SLACK or not abs(np.exp(logs).sum() - 1) <= _SLACK:
        raise ValueError(f"{name}.log_weights must be logarithms of weights that sum to one; get the file again.")


def _check_spread(means: np.ndarray, variances: Array | float, name: str, most_squares: float = _MOST_SQUARES) -> None:
    """Raise if the squares of means, in units of the variances, are more than these, or leave their type."""
    most = _most(means)
    _check_size(means, name, most)
    with np.errstate(over="ignore"):
        squares = np.square(means.astype(np.float64)) / np.asarray(variances)
    spread = np.min(np.asarray(variances)) >= _least_variance(means) and np.max(np.asarray(variances)) <= most**2
    if not squares.max() <= most_squares or not spread:
        raise ValueError(
            f"{name} must be within {most_squares**0.5:g} standard deviations of possible size; get the file again."
        )


def _check_kind(accepted: bool, kernel: Kernel, kernel_map: object, name: str) -> None:
    if not accepted:
        raise ValueError(
            f"{name} must have a map of {kernel!r}, got a {type(kernel_map).__name__}; get the file again."
        )


def _check_inputs(kernel_map: KernelMap, name: str, width: int) -> None:
    if kernel_map.n_inputs != width:
        raise ValueError(
            f"{name} must take rows of {width} columns, got a map of {kernel_map.n_inputs}; get the file again."
        )
