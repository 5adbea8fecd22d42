"""Results as `set_output` asks for them: a table with the ids of its rows, and one for each of several types."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Any, TypeVar

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils._set_output import (  # pyright: ignore[reportPrivateUsage]
    _get_output_config,
    _wrap_data_with_container,
)

from fishergraph._typing import Array, IdsLike

F = TypeVar("F", bound=Callable[..., Any])


def asked_output(model: TransformerMixin) -> str:
    """What `set_output` asks for: "default", "pandas" or "polars"."""
    return _get_output_config("transform", model)["dense"]


def named_first(method: F) -> F:
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


def named_output(model: TransformerMixin, Z: Array | dict[str, Array] | None, ids: IdsLike) -> Any:
    """A result with the ids of its rows as the index of a DataFrame, if that is asked for.

    scikit-learn names the columns of one table; those of several types are named here.
    """
    kind = asked_output(model)
    if isinstance(Z, dict) and kind != "default":
        titles: dict[str, np.ndarray] = getattr(model, "get_feature_names_out")()  # noqa: B009
        by_type: dict[str, IdsLike] = ids  # type: ignore[assignment]
        return {name: _table(kind, rows, titles[name], by_type[name]) for name, rows in Z.items()}
    if Z is None or ids is None or kind != "pandas":
        return Z
    from pandas import DataFrame

    index: Any = ids
    return DataFrame(Z, index=index)


def _table(kind: str, rows: Array, titles: np.ndarray, ids: IdsLike) -> Any:
    """The rows of a type as a table."""
    values: Any = rows
    index: Any = ids
    if kind == "pandas":
        from pandas import DataFrame

        return DataFrame(values, index=index, columns=titles)
    from polars import DataFrame as Frame

    return Frame(values, schema=list(map(str, titles)), orient="row")
