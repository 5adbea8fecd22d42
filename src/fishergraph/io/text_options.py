"""What a user says of a text file: `TextOptions`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TextOptions:
    """What a user says of a text file; what is None is found.

    separator : what separates the columns.
    header : whether the first line holds their names.
    encoding : that of the text; a byte-order mark tells more.
    """

    separator: str | None = None
    header: bool | None = None
    encoding: str | None = None


ANY_TEXT = TextOptions()  # nothing is said
