"""Ids that look like one that is not known."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

_ZEROS, _POINT = re.compile(r"^0+(?=\d)"), re.compile(r"^(\d+)\.0+$")
_MOST = 100_000  # ids that are compared letter by letter
_ALIKE = 0.7  # the least share of letters in common


def near_matches(wanted: object, known: Iterable[object], most: int = 3) -> list[object]:
    """The known ids that are most like the wanted one, the most similar first.

    Ids that differ by case, blanks or the way a number is written alone come first. Others are compared letter by
    letter if they begin or end with the same letter and are about as long; of very many, the first are.
    """
    word = _folded(wanted)
    listed = list(known)
    same = [value for value in listed if _folded(value) == word]
    if same or not word:
        return same[:most]
    close = [value for value in listed if _may_match(word, _folded(value))][:_MOST]
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(word)
    ranked = []
    for place, value in enumerate(close):
        matcher.set_seq1(_folded(value))
        if matcher.quick_ratio() >= _ALIKE and (share := matcher.ratio()) >= _ALIKE:
            ranked.append((-share, place))
    return [close[place] for _, place in sorted(ranked)[:most]]


def did_you_mean(matches: Sequence[object]) -> str:
    """The advice that names near matches; empty if there are none."""
    return f"did you mean {' or '.join(map(repr, matches))}?" if matches else ""


def _folded(value: object) -> str:
    """An id without blanks, case, leading zeros, and the .0 of an integer."""
    text = "".join(str(value).split()).casefold()
    return _POINT.sub(r"\1", _ZEROS.sub("", text)) if text[:1].isdigit() else text


def _may_match(word: str, other: str) -> bool:
    """Whether two texts can have enough letters in common."""
    if not other or abs(len(word) - len(other)) > 2 + len(word) // 4:
        return False
    return word[0] == other[0] or word[-1] == other[-1]
