"""What `verify` says: one line for everything that was looked at."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple


class Check(NamedTuple):
    """One thing that was looked at.

    name : of the array, the stage or the parameters.
    same : whether it is as expected.
    detail : how it was found out, what differs, or why it was not checked.
    skipped : whether it was not checked.
    """

    name: str
    same: bool
    detail: str
    skipped: bool = False


@dataclass(frozen=True, repr=False)
class Verification:
    """What `verify` found.

    Parameters
    ----------
    checks : tuple of Check
        Name, whether it is the same, details of everything that was looked at, and whether it was skipped.

    See Also
    --------
    verify : Makes one.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from fishergraph.scale import verify, write_store
    >>> store = write_store(pathlib.Path(tempfile.mkdtemp()) / "path", [(0, 1), (1, 2)])
    >>> verify(store).is_same
    True
    """

    checks: tuple[Check, ...]

    @property
    def is_same(self) -> bool:
        """Whether nothing differs."""
        return all(check.same for check in self.checks)

    @property
    def differences(self) -> list[str]:
        """What differs, in words."""
        return [f"{check.name}: {check.detail}" for check in self.checks if not check.same]

    def __repr__(self) -> str:
        return f"Verification({len(self.checks)} checks, {len(self.differences) or 'none'} differ)"

    def __str__(self) -> str:
        return "\n".join(f"{_found(check):<7}  {check.name}: {check.detail}" for check in self.checks)


def _found(check: Check) -> str:
    """What was found out, as one word."""
    if not check.same:
        return "DIFFERS"
    return "skipped" if check.skipped else "same"


def checked(name: str, damaged: Iterable[str], detail: str) -> list[Check]:
    """The entries of something that was compared: one for every difference, or one that says that there is none."""
    found = [Check(name, False, text) for text in damaged]
    return found or [Check(name, True, detail)]
