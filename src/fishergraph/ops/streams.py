"""Random streams whose draws are arrays of the library of the points."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import is_torch_array

from fishergraph._errors import InputError


def random_stream(rng: Any, like: Any) -> Any:
    """The stream of a seed or generator whose draws are arrays like `like`; a stream is returned unchanged."""
    if not is_torch_array(like):
        return _generator(rng)
    from fishergraph.ops.torch_device import TensorStream

    return rng if isinstance(rng, TensorStream) else TensorStream(_generator(rng), like.device)


def _generator(rng: Any) -> np.random.Generator:
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise InputError(
            parameter="rng",
            expected="be None, an integer of at least 0 or a NumPy generator",
            got=f"{rng!r}",
            advice="pass one of these",
        ) from error
