"""`Component`: the base of the small frozen records that hold the options of one link of the method."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, replace
from functools import cache
from typing import Any, Self, TypeVar

from fishergraph._errors import InputError
from fishergraph._validation import look_up

C = TypeVar("C", bound="Component")


@dataclass(frozen=True, repr=False)
class Component:
    """A frozen record of options that validates itself when it is made.

    Components follow scikit-learn's parameter protocol, so that a search can name the options of a component inside an
    estimator, as in ``family__sharpness``. They are immutable: `set_params` returns a changed copy.
    """

    def __post_init__(self) -> None:
        self.check()
        for name, value in vars(self).items():
            if isinstance(value, list):  # components are hashable
                object.__setattr__(self, name, tuple(value))

    def check(self) -> None:
        """Raise an `InputError` unless every option is valid."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the options by name; those of nested components as ``name__option`` if `deep`."""
        params = {field.name: getattr(self, field.name) for field in fields(self)}
        if deep:
            nested = {name: value.get_params() for name, value in params.items() if isinstance(value, Component)}
            params |= {f"{name}__{key}": value for name, options in nested.items() for key, value in options.items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Return a copy with these options; ``name__option`` reaches into a nested component."""
        known = self.get_params(deep=False)
        unknown = next((name for name in params if name.partition("__")[0] not in known), None)
        if unknown is not None:
            raise InputError(
                parameter=f"an option of {type(self).__name__}",
                value=unknown,
                expected=f"be one of {', '.join(map(repr, known))}" if known else "not be given, as it has none",
            )
        return replace(self, **merged_params(self, params))

    def __sklearn_clone__(self) -> Self:
        return self

    def __repr__(self) -> str:
        options = ", ".join(f"{field.name}={value!r}" for field, value in self._changed())
        return f"{type(self).__name__}({options})"

    def _changed(self) -> Iterator[tuple[Field[Any], Any]]:
        """The fields that differ from their default, with their values."""
        for field in fields(self):
            value = getattr(self, field.name)
            if field.default is MISSING or not _equal(value, field.default):
                yield field, value


def _equal(value: Any, default: Any) -> bool:
    return type(value) is type(default) and value == default


def merged_params(owner: Any, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return `params` with every ``name__option`` merged into a changed copy of the component `name` of the owner."""
    plain = {name: value for name, value in params.items() if "__" not in name}
    known = owner.get_params(deep=False)
    for name, value in params.items():
        parent, found, option = name.partition("__")
        if found:
            nested = plain.get(parent, known.get(parent))
            if not isinstance(nested, Component):
                raise _not_nested(parent, option, nested)
            plain[parent] = nested.set_params(**{option: value})
    return plain


def _not_nested(parent: str, option: str, value: Any) -> Exception:
    return InputError(
        f"{parent} must be a component with the option {option!r}, got {value!r}; set {parent} to a component first.",
        parameter=parent,
        value=value,
    )


def choose(kinds: Mapping[str, Callable[[], C]], value: str | C, base: type[C], name: str, *, example: str) -> C:
    """Return the component that `value` is or names; an unknown name lists the known ones."""
    if isinstance(value, base):
        return value
    return _default(look_up(kinds, value, f"{name} (or a component such as {example})"))


@cache
def _default(kind: Callable[[], C]) -> C:
    """The component with its default options, made and validated once."""
    return kind()
