"""Blocks of some rows: each row stands at the place that it has among all rows.

A product of matrices may give a row other bits at another place of its block, or in a block of another height; the
other rows of the block do not matter.
"""

from __future__ import annotations

import numpy as np

NONE = -1  # a place of a block that no row needs


def gathered(blocks: list[slice], rows: np.ndarray) -> list[np.ndarray]:
    """Blocks that hold each of some ascending rows once, at its place in a block of the same height.

    An entry is the position of a row in `rows`, or `NONE`.
    """
    starts = np.array([block.start for block in blocks])
    number = np.searchsorted(starts, rows, side="right") - 1
    place = rows - starts[number]
    height = np.array([block.stop - block.start for block in blocks])[number]
    order = np.lexsort((place, height))
    slot = np.stack([height, place], axis=1)[order]
    is_first = np.append(True, (slot[1:] != slot[:-1]).any(axis=1))[: len(rows)]
    first = np.flatnonzero(is_first)
    copy = np.arange(len(rows)) - np.repeat(first, np.diff(np.append(first, len(rows))))
    found: list[np.ndarray] = []
    for size in np.unique(height).tolist():
        mine = slot[:, 0] == size
        filled = np.full((int(copy[mine].max()) + 1, size), NONE)
        filled[copy[mine], slot[mine, 1]] = order[mine]
        found.extend(filled)
    return found


def whole_blocks(blocks: list[slice], rows: np.ndarray) -> np.ndarray:
    """All rows of the blocks that hold one of these rows."""
    starts = np.array([block.start for block in blocks])
    hit = np.unique(np.searchsorted(starts, rows, side="right") - 1).tolist()
    return np.concatenate([np.arange(blocks[k].start, blocks[k].stop) for k in hit] or [rows])


def padded(filled: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The rows of a group; some row of it stands at the places that are not needed."""
    return rows[np.where(filled < 0, filled.max(), filled)]
