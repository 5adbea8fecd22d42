"""The one rule for hostile input: a typed error raised by the library, or a finite result."""

from __future__ import annotations

import dataclasses
import dis
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import scipy.sparse as sp

import fishergraph
from fishergraph._errors import FishergraphError

_PACKAGE = str(Path(fishergraph.__file__).parent).replace("\\", "/") + "/"
_RAISE = dis.opmap["RAISE_VARARGS"]
# What the library may raise. Everything else (KeyError, AttributeError, a plain ValueError, …) comes from inside.
_TYPES = (FishergraphError, OSError)
# Scikit-learn and PyTorch Geometric validate for their base classes; their messages are written for users.
_VALIDATION = (
    "sklearn/utils/validation.py",
    "sklearn/utils/_param_validation.py",
    "sklearn/base.py",
    "torch_geometric/nn/aggr/base.py",
)


class Fault(Exception):
    """What a case raises itself when it sees the rule broken, such as a half-written file."""


def judge(action: Callable[[], Any]) -> tuple[str, str]:
    """("result" | "refused" | "fault", what was seen) of one hostile call."""
    try:
        result = action()
    except Fault as fault:
        return "fault", str(fault)
    except Exception as error:
        if is_clear(error):
            return "refused", f"{type(error).__name__}: {error}"
        return "fault", "inner error: " + "".join(traceback.format_exception(error))
    where = not_finite(result)
    return ("fault", f"not finite: {where}") if where else ("result", "")


def is_clear(error: BaseException) -> bool:
    """Whether this is a typed error that the library raised itself, by a raise statement of its own."""
    tb: TracebackType | None = error.__traceback__
    while tb is not None and tb.tb_next is not None:
        tb = tb.tb_next
    if tb is None or not str(error):
        return False
    code = tb.tb_frame.f_code
    file = code.co_filename.replace("\\", "/")
    if file.endswith(_VALIDATION):
        return isinstance(error, (ValueError, TypeError))
    # An error from compiled code has no frame of its own: the innermost frame then stands at a call, not at a raise.
    raised = file.startswith(_PACKAGE) and code.co_code[tb.tb_lasti] == _RAISE
    return raised and isinstance(error, _TYPES)


def not_finite(value: Any, name: str = "result") -> str:
    """The name of the first array or number in a result that is not finite; empty when all are."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        value = (value.float() if str(value.dtype) == "torch.bfloat16" else value).numpy()  # NumPy lacks that type
    if sp.issparse(value):
        value = value.data
    if isinstance(value, (float, np.floating)):
        value = np.asarray(value)
    if isinstance(value, np.ndarray):
        return name if value.dtype.kind in "fc" and not np.isfinite(value).all() else ""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return next(filter(None, (not_finite(v, f"{name}.{k}") for k, v in value.items())), "")
    if isinstance(value, (list, tuple)):
        return next(filter(None, (not_finite(v, f"{name}[{i}]") for i, v in enumerate(value))), "")
    return ""
