"""Errors and warnings of the library: types with fields, so that nobody has to read their text.

Errors derive from `FishergraphError` and from the built-in type that users expect (`ValueError`, `TypeError`, …).

Most of them are built from fields::

    raise InputError(parameter="n_anchors", value=0, expected="be an integer of at least 1")

which reads "n_anchors must be an integer of at least 1, got 0." A caller that knows a better name or better advice
raises `error.revised(parameter="the index of X")`. The command line prints `error.text(name, setting)`, in which
parameters have the names of options. A sentence that does not fit the pattern is passed as the first argument; the
fields then only inform. All of them can be pickled, because workers raise them in other processes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

Name = Callable[[str], str]
Setting = Callable[[str, object], str]
_LONGEST_VALUE = 60  # characters of a value in a message


def shown(value: object, most: int = _LONGEST_VALUE) -> str:
    """`repr(value)`, cut after `most` characters."""
    text = repr(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _setting(name: str, value: object) -> str:
    return f"{name}={value!r}"


class FishergraphError(Exception):
    """Base class of the errors that the library raises.

    Parameters
    ----------
    message : str, optional
        The complete text. Without it the text is built from the fields.
    **fields
        The fields of the error, which become its attributes.
    """

    def __init__(self, message: str | None = None, **fields: Any):
        self.message = message
        self._fields = fields
        self.__dict__.update(fields)
        super().__init__(self.text())

    def text(self, name: Name = str, setting: Setting = _setting) -> str:
        """The message, with `name(parameter)` and `setting(parameter, value)` for parameters and their settings."""
        return self._sentence(name, setting) if self.message is None else self.message

    def revised(self, **changes: Any) -> Self:
        """The same error with other values of some fields."""
        return type(self)(self.message, **(self._fields | changes))

    def _sentence(self, name: Name, setting: Setting) -> str:
        return type(self).__name__

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self._fields)


def _rebuild(kind: type[FishergraphError], message: str | None, fields: dict[str, Any]) -> FishergraphError:
    return kind(message, **fields)


def _ending(advice: str, settings: Mapping[str, object], setting: Setting) -> str:
    choices = {name: value if isinstance(value, tuple) else (value,) for name, value in settings.items()}
    changes = [f"set {' or '.join(setting(name, value) for value in values)}" for name, values in choices.items()]
    text = ", or ".join(part for part in (advice, *changes) if part)
    return f"; {text}." if text else "."


class _Invalid(FishergraphError):
    """An input that cannot be used: "{parameter} must {expected}, got {value}; {advice}."."""

    def __init__(
        self,
        message: str | None = None,
        *,
        parameter: str = "",
        value: Any = None,
        expected: str = "",
        got: str = "",
        advice: str = "",
        settings: Mapping[str, object] | None = None,
        **more: Any,
    ):
        self.parameter, self.value, self.expected, self.got, self.advice = parameter, value, expected, got, advice
        self.settings = dict(settings or {})
        fields = {"parameter": parameter, "value": value, "expected": expected, "got": got, "advice": advice}
        super().__init__(message, **fields, settings=self.settings, **more)

    @property
    def problem(self) -> str:
        """The message without the advice."""
        return f"{self.parameter} must {self.expected}, got {self.got or shown(self.value)}"

    def _sentence(self, name: Name, setting: Setting) -> str:
        got = self.got or shown(self.value)
        return f"{name(self.parameter)} must {self.expected}, got {got}{_ending(self.advice, self.settings, setting)}"


class InputError(_Invalid, ValueError):
    """A parameter or an input has a value that cannot be used.

    Attributes
    ----------
    parameter : str
        Name of the parameter, or the words for a part of the input.
    value : object
        What was passed.
    expected : str
        What is possible, as a phrase that follows "must".
    got : str
        Words for what was passed, if its value does not tell.
    advice : str
        What to do.
    settings : dict
        Parameters and values that solve the problem; a tuple has several values, each of which does.
    """


class InputTypeError(_Invalid, TypeError):
    """An input is of a type that cannot be used; the fields are those of `InputError`."""


class UnknownNodeError(InputError):
    """An edge names a node that the list of ids does not have; `value` is its id, `near` are ids that look like it."""


class EdgeFaultsError(InputError):
    """A table of edges has several `faults`: `what`, `count`, `lines` or `rows` of the first, and their `values`."""

    faults: list[dict[str, Any]]


class NodeFaultsError(InputError):
    """A table of nodes has several `faults`, as those of `EdgeFaultsError`."""


class EndpointError(InputError):
    """An edge ends outside the nodes 0 … n_nodes - 1; `value` is the node that does not exist.

    Attributes
    ----------
    edge : int
        Index of the edge.
    n_nodes : int
        The number of nodes.
    """

    edge: int
    n_nodes: int


class TableError(InputError):
    """Columns of a table cannot be used; `value` has their names, `faults` pairs of a name and what is wrong."""

    faults: tuple[tuple[str, str], ...]


class MissingValueError(InputError):
    """A number is missing where all are needed; `value` is its row."""


class FileFormatError(FishergraphError, ValueError):
    """The content of a file is not what its format requires.

    Attributes
    ----------
    path : str or path
        The file.
    line : int or None
        Its first bad line, counted from 1.
    reason : str
        What is wrong.
    advice : str
        What to do.
    """

    def __init__(
        self,
        message: str | None = None,
        *,
        path: Any = "",
        line: int | None = None,
        reason: str = "",
        advice: str = "repair the file or download it again",
    ):
        self.path, self.line, self.reason, self.advice = path, line, reason, advice
        super().__init__(message, path=path, line=line, reason=reason, advice=advice)

    def _sentence(self, name: Name, setting: Setting) -> str:
        file = f"'{self.path}'" if self.path else "the file"
        file = file if self.line is None else f"line {self.line} of {file}"
        return f"{file} cannot be read: {self.reason}{_ending(self.advice, {}, setting)}"


class NotEnoughMemory(FishergraphError, MemoryError):
    """The work needs more memory than there is.

    Attributes
    ----------
    purpose : str
        What needs the memory, as the subject of "needs".
    needed, available : float
        Bytes.
    advice : str
        What to do.
    settings : dict
        Parameters and values that solve the problem.
    """

    def __init__(
        self,
        message: str | None = None,
        *,
        purpose: str = "this",
        needed: float = 0,
        available: float = 0,
        advice: str = "",
        settings: Mapping[str, object] | None = None,
    ):
        self.purpose, self.needed, self.available, self.advice = purpose, needed, available, advice
        self.settings = dict(settings or {})
        fields = {"purpose": purpose, "needed": needed, "available": available, "advice": advice}
        super().__init__(message, **fields, settings=self.settings)

    def _sentence(self, name: Name, setting: Setting) -> str:
        sizes = f"needs about {gigabytes(self.needed)}, got {gigabytes(self.available)} of memory"
        return f"{self.purpose} {sizes}{_ending(self.advice, self.settings, setting)}"


class NotEnoughDisk(FishergraphError, OSError):
    """The work needs more space on a disk than is free.

    Attributes
    ----------
    path : str or path
        Where the files would be.
    needed, available : float
        Bytes.
    advice : str
        What to do.
    """

    def __init__(
        self,
        message: str | None = None,
        *,
        path: Any = "",
        needed: float = 0,
        available: float = 0,
        advice: str = "free some space, or choose another disk",
    ):
        self.path, self.needed, self.available, self.advice = path, needed, available, advice
        super().__init__(message, path=path, needed=needed, available=available, advice=advice)

    def _sentence(self, name: Name, setting: Setting) -> str:
        sizes = f"needs about {gigabytes(self.needed)} of disk space, got {gigabytes(self.available)} free"
        return f"'{self.path}' {sizes}{_ending(self.advice, {}, setting)}"


def gigabytes(n_bytes: float) -> str:
    """A size in words, also of integers that no float can represent."""
    if isinstance(n_bytes, int) and n_bytes >= 2**200:
        return f"more than 2**{n_bytes.bit_length() - 31} GB"
    return f"{n_bytes / 1e9:,.1f} GB"


class MissingExtra(FishergraphError, ImportError):
    """An optional dependency is not installed.

    Attributes
    ----------
    package : str
        The package that cannot be imported.
    extra : str
        The extra of fishergraph that installs it.
    """

    def __init__(self, message: str | None = None, *, package: str = "", extra: str = ""):
        self.package, self.extra = package, extra
        super().__init__(message, package=package, extra=extra)

    def _sentence(self, name: Name, setting: Setting) -> str:
        return (
            f"this feature needs the package '{self.package}', which is not installed; "
            f"run: pip install 'fishergraph[{self.extra}]'"
        )


class MissingDevice(FishergraphError, RuntimeError):
    """The device that was asked for does not exist here.

    Attributes
    ----------
    device : str
        Its name.
    reason : str
        Why it cannot be used.
    """

    def __init__(self, message: str | None = None, *, device: str = "", reason: str = ""):
        self.device, self.reason = device, reason
        super().__init__(message, device=device, reason=reason)

    def _sentence(self, name: Name, setting: Setting) -> str:
        cpu = setting("device", "cpu")
        asked = setting("device", self.device)
        return f"{asked} cannot be used: {self.reason}; set {cpu}, or use a machine with a GPU."


class ClusterError(FishergraphError, RuntimeError):
    """A cluster, or one of its workers, cannot do the work.

    Attributes
    ----------
    where : str
        The address of the scheduler or of the worker.
    reason : str
        What is wrong.
    advice : str
        What to do.
    """

    def __init__(self, message: str | None = None, *, where: str = "", reason: str = "", advice: str = ""):
        self.where, self.reason, self.advice = where, reason, advice
        super().__init__(message, where=where, reason=reason, advice=advice)

    def _sentence(self, name: Name, setting: Setting) -> str:
        return f"{self.where} cannot be used: {self.reason}{_ending(self.advice, {}, setting)}"


# --- warnings -------------------------------------------------------------------------------------------


class TrainingDiverged(FishergraphError, FloatingPointError):
    """The loss of a training became NaN or infinite.

    Attributes
    ----------
    epoch : int
        The epoch in which it did.
    """


class FishergraphWarning(UserWarning):
    """Base class of the warnings that the library issues.

    Attributes
    ----------
    kind : str
        What it is about; one call of the library issues each kind once.
    """

    def __init__(self, message: str = "", *, kind: str = ""):
        super().__init__(message)
        self.kind = kind or type(self).__name__


class FewPointsWarning(FishergraphWarning):
    """The data have fewer distinct points than the anchors or landmarks that were asked for.

    Attributes
    ----------
    what : str
        "anchors" or "landmarks".
    asked, used : int
        Their number.
    """

    def __init__(self, message: str = "", *, what: str = "", asked: int = 0, used: int = 0):
        text = f"asked for {asked} {what}, but the data hold only {used} distinct points: {used} are used."
        super().__init__(message or text, kind=f"few {what}")
        self.what, self.asked, self.used = what, asked, used


class NotConvergedWarning(FishergraphWarning):
    """An iteration stopped before it reached its tolerance.

    Attributes
    ----------
    n_iter : int
        Iterations that were done.
    residual, tolerance : float
        What was reached, and what was asked for.
    """

    def __init__(self, message: str = "", *, n_iter: int = 0, residual: float = 0.0, tolerance: float = 0.0):
        text = (
            f"no convergence after {n_iter} iterations: the residual is {residual:.1e}, the tolerance {tolerance:.1e}."
        )
        super().__init__(message or text)
        self.n_iter, self.residual, self.tolerance = n_iter, residual, tolerance
