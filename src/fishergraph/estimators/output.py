"""Results as `set_output` asks for them: a table with the ids of its rows, and one for each of several types."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils._set_output import (
    _get_output_config,  # pyright: ignore[reportPrivateUsage]
)

from fishergraph._typing import Array, IdsLike


def asked_output(model: object) -> str:
    """What `set_output` asks for: "default", "pandas" or "polars"."""
    return str(_get_output_config("transform", model)["dense"])


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
