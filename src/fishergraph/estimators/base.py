"""What the transformers share: the parameters of a layer, checked and looked up; seeds, files, and tags."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted

from fishergraph import _validation
from fishergraph._repr import short_params
from fishergraph._warn import each_warning_once
from fishergraph.em.anchors import METHODS
from fishergraph.em.e_step import e_step_slack
from fishergraph.estimators.state import load_state, save_state
from fishergraph.family import Family, GaussianMixture, choose_family
from fishergraph.kernel_map import KERNELS
from fishergraph.layer import ATTENTIONS, LayerSpec
from fishergraph.multiset import makes_lifted
from fishergraph.ops import choose_backend

E = TypeVar("E", bound="FisherTransformer")
F = TypeVar("F", bound=Callable[..., Any])


def all_or_nothing(fit: F) -> F:
    """`fit`, which leaves the model as it was if it fails or is interrupted, and issues each kind of warning once."""

    @wraps(fit)
    @each_warning_once()
    def whole(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            return fit(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return whole  # type: ignore[return-value]


def _named_first(method: F) -> F:
    """A method that scikit-learn has wrapped, whose first argument may be left out or given by its name again."""
    first = list(signature(method).parameters.values())[1]

    @wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if args or (first.name not in kwargs and first.default is Parameter.empty):
            return method(self, *args, **kwargs)
        return method(self, kwargs.pop(first.name, first.default), **kwargs)

    return call  # type: ignore[return-value]


class FisherTransformer(TransformerMixin, BaseEstimator):
    """The base of the estimators: a subclass has the parameters of a layer, under the names of `FisherEmbedding`."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in ("transform", "fit_transform"):
            if name in vars(cls):
                setattr(cls, name, _named_first(vars(cls)[name]))

    attention: str = "posterior"  # where it is no parameter, the paper's equations hold
    family: Any = "gaussian-mixture"
    fisher: Any = "approximate"
    tangent: Any = "estimate"
    # The entries of a model file's header that `_pack_more` adds.
    _more: ClassVar[tuple[str, ...]] = ()
    # The rest of the parameters that `_layer_spec` reads, each stored by the subclass's constructor.
    n_anchors: Any
    dim: Any
    normalize: Any
    anchor_method: Any
    n_em_iter: Any
    e_step: Any
    column_penalty: Any
    variance: Any
    sharpness: Any
    prior: Any
    counts: Any
    kernel: Any
    bandwidth: Any
    max_samples: Any
    device: Any
    backend: Any
    precision: Any
    random_state: Any
    n_features_in_: int

    __repr__ = short_params

    def _seed_words(self) -> list[int]:
        """Four words drawn from `random_state`: what every stream of a fit comes from."""
        generator = check_random_state(_validation.check_random_seed(self.random_state))
        return [int(word) for word in generator.randint(0, 2**32, size=4, dtype=np.uint32)]

    def _layer_spec(self) -> LayerSpec:
        """The parameters of a layer, checked and with names looked up."""
        slack = e_step_slack(self.e_step, self.column_penalty)
        attention = _validation.look_up(ATTENTIONS, self.attention, "attention")
        if not attention.has_variance and self.e_step != "posterior":
            raise ValueError(
                f"attention={self.attention!r} has an E-step of its own, got e_step={self.e_step!r}; "
                "leave e_step='posterior', or use attention='posterior'."
            )
        variance = self.variance
        if not isinstance(variance, str) or variance != "auto":
            variance = _validation.check_number(variance, "variance (or 'auto')", least=1e-12, most=1e12)
        n_em_iter = _validation.check_integer(self.n_em_iter, "n_em_iter", least=0, most=_validation.MOST_ITERATIONS)
        device = self.device.partition(":")[0]
        if device == "cpu" or self.backend is not None:  # a backend that cannot do the work says so before it
            choose_backend(self.backend, device=device, n_em_iter=n_em_iter, slack=slack)
        return LayerSpec(
            n_anchors=_validation.check_integer(self.n_anchors, "n_anchors", least=1, most=_validation.MOST_ANCHORS),
            anchor_method=self._anchor_method(),
            dim=_validation.check_integer(self.dim, "dim", least=1, most=_validation.MOST_COLUMNS),
            n_em_iter=n_em_iter,
            variance=variance,
            sharpness=_validation.check_number(self.sharpness, "sharpness", strict=True, most=1.0),
            prior=_validation.check_number(self.prior, "prior", most=1e12),
            counts=_validation.check_flag(self.counts, "counts"),
            attention=attention,
            fit_map=_validation.look_up(KERNELS, self.kernel, "kernel"),
            keeps_phi=self.kernel == "identity",
            bandwidth=_validation.check_number(self.bandwidth, "bandwidth", least=0.01, most=1e6),
            max_samples=_validation.check_integer(self.max_samples, "max_samples", least=1),
            backend=self.backend,
            device=device,
            slack=slack,
            family=self._family(n_em_iter),
        )

    def _family(self, n_em_iter: int) -> Family:
        """The family, with its options; the rule of the authors' code has one of its own."""
        family = choose_family(self.family, self.fisher, self.tangent)
        if self.attention != "posterior" and family != GaussianMixture():
            raise ValueError(
                f"attention={self.attention!r} has a metric of its own, got the family {family.name!r} with options; "
                "leave family, fisher and tangent, or use attention='posterior'."
            )
        if family.tangent == "score" and n_em_iter > 1:
            raise ValueError(
                f"tangent='score' is a gradient at θ_0 and takes n_em_iter=1, got {n_em_iter}; "
                "leave n_em_iter=1, or use tangent='estimate'."
            )
        return family

    def _anchor_method(self) -> str:
        """The name of the anchors' learner; spherical k-means asks for points that are unit vectors."""
        _validation.look_up(METHODS, self.anchor_method, "anchor_method")
        multiset = getattr(self, "multiset", None)
        if self.anchor_method == "spherical" and (not self.normalize or makes_lifted(multiset)):
            got = f"the lifted members of multiset={multiset!r}" if self.normalize else "normalize=False"
            raise ValueError(
                f"anchor_method='spherical' needs points that are unit vectors, got {got}; "
                "set normalize=True and a multiset of nodes, or use 'kmeans'."
            )
        return self.anchor_method

    def _named(self, Z: Any, ids: Any) -> Any:
        """Z as a table with these ids as its index, if the output is set to pandas; scikit-learn names the columns."""
        if Z is None or ids is None or _get_output_config("transform", self)["dense"] != "pandas":
            return Z
        from pandas import DataFrame

        return DataFrame(Z, index=ids)

    def save(self, path: str | Path) -> None:
        """Write the fitted model to one safetensors file (arrays, and parameters as JSON in its header)."""
        check_is_fitted(self)
        save_state(self, path)

    @classmethod
    def load(cls: type[E], path: str | Path, *, device: str | None = None) -> E:
        """The model that `save` wrote; its transform has the same bits.

        `device` takes the place of the one it was fitted on; on the CPU the precision is float32.
        """
        model = load_state(cls, path)
        if device is not None:
            model.set_params(device=device, precision="float32" if device == "cpu" else model.precision)
        return model

    def _pack_more(self, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
        """What a subclass keeps beside its stack: entries of the header; arrays are put among the others."""
        return {}

    def _unpack_more(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Give a subclass back what `_pack_more` put away."""

    def _check_fitted(self) -> None:
        """Raise unless the parameters are possible, and fit what a model file says was learned."""
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        support = getattr(self.family, "support", self.family)
        tags.input_tags.positive_only = isinstance(support, str) and support in ("multinomial", "counts")
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
