"""The base of the transformers: components by name, nested parameters, seeds, files and tags."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils._set_output import _wrap_data_with_container  # pyright: ignore[reportPrivateUsage]
from sklearn.utils.validation import check_is_fitted, validate_data

from fishergraph import _validation
from fishergraph._diagram import Diagram, Summary
from fishergraph._errors import InputError, InputTypeError, MissingExtra
from fishergraph._progress import Verbose, progress_bar, silent
from fishergraph._repr import short_params
from fishergraph._typing import Array, MatrixLike, RandomState
from fishergraph._warn import each_warning_once
from fishergraph.device import Device, Workspace, choose_device
from fishergraph.em.settings import EM, choose_em
from fishergraph.estimators.output import named_output
from fishergraph.estimators.state import ModelState, write_model
from fishergraph.estimators.summary import summarize
from fishergraph.estimators.table_input import fit_table, read_table
from fishergraph.family import Family, choose_family
from fishergraph.io.array_file import reading_model
from fishergraph.kernel_map import Kernel, choose_kernel
from fishergraph.layer import Layer, Run, SplitLayer
from fishergraph.multiset import Rule
from fishergraph.multiset.rule import not_counts

if TYPE_CHECKING:
    from fishergraph.tables import TableEncoder

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
    """A method that scikit-learn has wrapped, whose first argument may be left out or passed by its name again.

    scikit-learn makes a table of its result, unless it is one for each of several types.
    """
    first = list(signature(method).parameters.values())[1]
    plain = getattr(method, "__wrapped__", method)

    @wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not args and (first.name in kwargs or first.default is not Parameter.empty):
            args = (kwargs.pop(first.name, first.default),)
        Z = plain(self, *args, **kwargs)
        return Z if isinstance(Z, dict) else _wrap_data_with_container("transform", Z, args[0], self)

    return call  # type: ignore[return-value]


class FisherEstimator(Diagram, BaseEstimator, ABC):
    """The base of the estimators: model files, and components as parameters.

    A search reaches the options of a component by ``name__option``. `_chosen` says how a parameter becomes its
    component: a name, a number or None stands for one.
    """

    _chosen: ClassVar[dict[str, Callable[[Any], Any]]] = {}

    encoder_: TableEncoder | None

    # The fitted attributes that every model file has, beside the records of `_state`.
    _remembered: ClassVar[tuple[str, ...]] = ("n_features_in_", "n_samples_fit_")

    __repr__ = short_params

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name.

        A parameter with an invalid value has no options; `fit` raises for it.

        Parameters
        ----------
        deep : bool, default=True
            Include the options of components, as ``name__option``.

        Returns
        -------
        dict
            The parameters.
        """
        params = super().get_params(deep)
        for name, choose in self._components().items() if deep else ():
            if not hasattr(params[name], "get_params"):
                component = _chosen_or_none(choose, params[name])
                options = {} if component is None else component.get_params()
                params |= {f"{name}__{option}": entry for option, entry in options.items()}
        return params

    def _components(self) -> dict[str, Callable[[Any], Any]]:
        """The parameters that are components, with the function that makes each of them."""
        return self._chosen

    def set_params(self, **params: Any) -> Self:
        """Set parameters.

        Parameters
        ----------
        **params : dict
            Parameters by name; ``name__option`` replaces the component `name` by a changed copy.

        Returns
        -------
        estimator
            The estimator itself.
        """
        known = self.get_params(deep=False)
        nested: dict[str, dict[str, Any]] = {}
        for name in list(params):
            parent, found, option = name.partition("__")
            if found and parent in self._chosen:
                nested.setdefault(parent, {})[option] = params.pop(name)
            elif found and parent in known and not hasattr(params.get(parent, known[parent]), "set_params"):
                value, expected = params.get(parent, known[parent]), f"have the parameter {option!r}"
                raise InputError(parameter=parent, value=value, expected=expected, advice=f"set {parent} itself")
        for parent, options in nested.items():
            value = params.get(parent, known[parent])
            component = self._chosen[parent](value)
            unknown = sorted(set(options) - set(() if component is None else component.get_params()))
            if unknown:
                raise InputError(
                    f"Invalid parameter {f'{parent}__{unknown[0]}'!r} for {type(self).__name__} with "
                    f"{parent}={value!r}; set {parent} to a component that has the option.",
                    parameter=parent,
                    value=value,
                )
            assert component is not None
            params[parent] = component.set_params(**options)
        return super().set_params(**params)

    def save(self, path: str | Path) -> None:
        """Write the fitted model to one safetensors file.

        The file has the arrays, and the parameters as JSON in its header.

        Parameters
        ----------
        path : str or path
            The file; it appears complete or not at all.
        """
        check_is_fitted(self)
        write_model(path, type(self).__name__, self.get_params(deep=False), vars(self), self._state(), self._weights())

    @classmethod
    def load(cls, path: str | Path, *, device: str | Device | None = None) -> Self:
        """Read a model that `save` wrote; it gives the same bits.

        Parameters
        ----------
        path : str or path
            The file.
        device : str or Device, optional
            Replaces the device the model was fitted on.

        Returns
        -------
        estimator
            The fitted model.
        """
        with reading_model(path):
            state = ModelState.read(path, cls.__name__)
            model = cls.from_state(state.params, state)
            state.finish()
        return model if device is None else model.set_params(device=device)

    @classmethod
    def from_state(cls, params: dict[str, Any], state: ModelState) -> Self:
        """Return the fitted estimator of an open model file.

        Parameters
        ----------
        params : dict
            The parameters of the estimator.
        state : ModelState
            The contents of the file, of which the estimator takes its own.

        Returns
        -------
        estimator
            The fitted model.
        """
        model = cls(**params)
        vars(model).update(state.fitted(cls._remembered))
        model._restore(state)
        return model

    def records(self) -> dict[str, Any]:
        """Return the fitted records by name, for a model file.

        Returns
        -------
        dict
            Records that `from_state` takes back.
        """
        return self._state()

    def _encode(self, X: MatrixLike, *, fitting: bool) -> Any:
        """The rows of a table; a fit keeps the encoder, or None for complete numbers."""
        if fitting:
            self.encoder_, rows = fit_table(X)
            return rows
        return read_table(X, self.encoder_)

    def _summary(self) -> Summary | None:
        return summarize(vars(self))

    @abstractmethod
    def _state(self) -> dict[str, Any]:
        """The fitted records by name, for a model file."""

    def _weights(self) -> dict[str, np.ndarray]:
        """Arrays of a model file beside those of the records."""
        return {}

    @abstractmethod
    def _restore(self, state: ModelState) -> None:
        """Take the fitted records of a model file, and raise unless they fit the parameters."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        family = getattr(self, "family", "gaussian-mixture")
        support = getattr(family, "support", family)
        tags.input_tags.positive_only = isinstance(support, str) and support in ("multinomial", "counts")
        return tags


def _chosen_or_none(choose: Callable[[Any], Any], value: object) -> Any:
    """The component, or None if the value is invalid or the package that has it is not installed."""
    try:
        return choose(value)
    except (InputError, InputTypeError, MissingExtra):
        return None


class FisherTransformer(TransformerMixin, FisherEstimator):
    """The base of the embeddings."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in ("transform", "fit_transform"):
            if name in vars(cls):
                setattr(cls, name, _named_first(vars(cls)[name]))

    device: str | Device
    random_state: RandomState
    n_jobs: int | None
    verbose: Verbose
    n_features_in_: int

    _chosen: ClassVar[dict[str, Callable[[Any], Any]]] = {
        "family": choose_family,
        "em": choose_em,
        "kernel": choose_kernel,
        "device": choose_device,
    }

    def _seed_words(self) -> list[int]:
        """Four words drawn from `random_state`: every stream of a fit comes from them."""
        generator = check_random_state(_validation.check_random_seed(self.random_state))
        return generator.randint(0, 2**32, size=4, dtype=np.uint32).tolist()

    def _run(self, workspace: Workspace, em: EM, costs: Callable[[], dict[str, float]]) -> Run:
        """How the work of a call is run; raises before the work if the configured engine cannot do it.

        A device is fed by one thread. Costs are counted if somebody looks at the progress.
        """
        n_jobs = 1 if workspace.tensors else _validation.check_n_jobs(self.n_jobs)
        progress = progress_bar(self.verbose)
        run = Run(workspace, n_jobs, progress, {} if progress is silent else costs())
        run.engine(em)
        expect = getattr(self.verbose, "expect", None)
        if expect is not None:
            expect(run.costs)
        return run

    def _check_columns(self, X: Any, fitting: bool) -> None:
        """Remember the number and names of the columns of X when fitting, compare them later."""
        if not hasattr(X, "layout"):
            validate_data(self, X, reset=fitting, skip_check_array=True)
        elif fitting:  # a tensor, which scikit-learn does not count
            self.n_features_in_ = X.shape[1]
            vars(self).pop("feature_names_in_", None)
        elif X.shape[1] != self.n_features_in_:
            raise InputError(
                f"X has {X.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} features "
                "as input; pass the features it was fitted with.",
                parameter="X",
                value=X.shape[1],
            )

    def _named(self, Z: Array | None, ids: Any) -> Any:
        """Z as a table with these ids as its index, if the output is set to pandas."""
        return named_output(self, Z, ids)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def make_layer(
    n_anchors: int,
    dim: int,
    *,
    family: str | Family,
    em: EM | None,
    kernel: str | Kernel,
    reading: str,
    unit: bool,
    rule: Rule | None = None,
) -> Layer:
    """The settings of a layer from the parameters of an estimator, validated together.

    `unit` says whether points are unit vectors, `rule` makes the multisets.
    """
    chosen, steps = choose_family(family), choose_em(em)
    if chosen.tangent == "score" and steps.n_iter > 1:
        raise InputError(
            parameter="em",
            value=steps,
            expected="have n_iter=1 with tangent='score', which is a gradient at θ_0",
            advice="leave n_iter=1, or use tangent='estimate'",
        )
    if not chosen.is_posterior and not steps.is_posterior:
        raise InputError(
            parameter="em",
            value=steps,
            expected=f"have e_step='posterior' with family={chosen!r}, which has responsibilities of its own",
            advice="leave e_step, or use another family",
        )
    if steps.init == "spherical" and (not unit or (rule is not None and rule.lifts)):
        raise InputError(
            parameter="em",
            value=steps,
            expected="have another init than 'spherical' if points are not unit vectors",
            got=f"multiset={rule!r}, whose members are lifted" if unit else "normalize=False",
            advice="set normalize=True and a multiset of nodes, or use init='kmeans'",
        )
    if chosen.support == "counts" and rule is not None and rule.signed:
        raise not_counts(rule)
    kind = Layer if rule is None or rule.kinds == 1 else SplitLayer
    return kind(
        n_anchors=_validation.check_integer(n_anchors, "n_anchors", least=1, most=_validation.MOST_ANCHORS),
        dim=_validation.check_integer(dim, "dim", least=1, most=_validation.MOST_COLUMNS),
        family=chosen,
        em=steps,
        kernel=choose_kernel(kernel),
        reading=reading,
    )


def check_unchanged(fitted: object, asked: object, names: dict[str, str]) -> None:
    """Raise if a parameter was changed after the fit; `names` maps fields of the settings to parameters."""
    pairs = {parameter: [_field(settings, field) for settings in (fitted, asked)] for field, parameter in names.items()}
    check_same({name: old for name, (old, _) in pairs.items()}, {name: new for name, (_, new) in pairs.items()})


def check_same(fitted: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """Raise if a parameter has another value than in the fit."""
    for parameter, old in fitted.items():
        new = asked[parameter]
        if old != new:
            text = f"{parameter} is {new!r}, but the model was fitted with {old!r}."
            advice = "Restore the parameter or call fit again."
            raise InputError(f"{text} {advice}", parameter=parameter, value=new)


def _field(settings: object, path: str) -> Any:
    for name in path.split("."):
        settings = getattr(settings, name)
    return settings
