"""Slow encodings of columns, cell by cell, from the rule in `fishergraph.tables.record`."""

from __future__ import annotations

import math
import re
from datetime import date, datetime, time, timedelta

import numpy as np


def _missing(cells):
    return [cell is None or (isinstance(cell, float) and math.isnan(cell)) for cell in cells]


def indicator(cells):
    share = sum(_missing(cells)) / len(cells)
    return [[math.sqrt(1 - share) if gone else 0.0] for gone in _missing(cells)]


def _beside(rows, cells):
    return [row + more for row, more in zip(rows, indicator(cells), strict=True)] if any(_missing(cells)) else rows


def _quantile(values, q):
    values, at = sorted(values), q * (len(values) - 1)
    low = math.floor(at)
    return values[low] + (at - low) * (values[min(low + 1, len(values) - 1)] - values[low])


def _robust(values):
    spread = (_quantile(values, 0.75) - _quantile(values, 0.25)) / 1.349
    if spread == 0:
        mean = sum(values) / len(values)
        spread = math.sqrt(sum((v - mean) ** 2 for v in values) / len(values))
    return _quantile(values, 0.5), spread


def _standard(value, centre, spread):
    return min(max((value - centre) / spread, -3.0), 3.0)


def _down(lengths):
    return 1 / math.sqrt(max(1.0, sum(lengths) / len(lengths)))


def number(cells):
    present = [cell for cell, gone in zip(cells, _missing(cells), strict=True) if not gone]
    centre, spread = _robust(present)
    factor = _down([_standard(value, centre, spread) ** 2 for value in present])
    rows = [
        [0.0 if gone else _standard(cell, centre, spread) * factor]
        for cell, gone in zip(cells, _missing(cells), strict=True)
    ]
    return _beside(rows, cells)


def boolean(cells):
    present = [cell for cell in cells if cell is not None]
    share = sum(present) / len(present)
    return _beside([[0.0 if cell is None else 2 * (cell - share)] for cell in cells], cells)


def category(cells):
    present = [cell for cell in cells if cell is not None]
    counts = {value: present.count(value) for value in present}
    known = sorted(value for value, count in counts.items() if count > 1)
    others = sum(count for value, count in counts.items() if count == 1)
    weights = [math.sqrt(1 - counts[value] / len(present)) for value in known] + [math.sqrt(1 - others / len(present))]
    rows = []
    for cell in cells:
        row = [0.0] * (len(known) + 1)
        if cell is not None:
            k = known.index(cell) if cell in known else len(known)
            row[k] = weights[k]
        rows.append(row)
    return _beside(rows, cells)


def dates(cells):
    """Of cells that differ in age, year and week, and have no time of the day, or do."""
    times = [None if c is None else c if isinstance(c, datetime) else datetime.combine(c, time()) for c in cells]
    origin = datetime(1970, 1, 1)
    days = [None if t is None else (t - origin) / timedelta(days=1) for t in times]
    present = [d for d in days if d is not None]
    centre, spread = _robust(present)

    def phases(t):
        whole = t.date()
        found = [
            (whole - date(whole.year, 1, 1)).days / 365.2425,
            ((whole - date(1970, 1, 1)).days + 3) % 7 / 7,
            (t - datetime.combine(whole, time())) / timedelta(days=1),
        ]
        return found

    varied = [k for k in range(3) if len({phases(t)[k] for t in times if t is not None}) > 1]
    rows = []
    for t, d in zip(times, days, strict=True):
        row = [0.0] * (1 + 2 * len(varied))
        if t is not None:
            row[0] = _standard(d, centre, spread)
            for place, k in enumerate(varied):
                angle = 2 * math.pi * phases(t)[k]
                row[1 + 2 * place], row[2 + 2 * place] = math.sin(angle), math.cos(angle)
        rows.append(row)
    factor = _down([sum(x * x for x in row) for row, d in zip(rows, days, strict=True) if d is not None])
    return _beside([[x * factor for x in row] for row in rows], cells)


def bucket(word, width):
    code = 14695981039346656037
    for byte in word.encode():
        code = ((code ^ byte) * 1099511628211) % 2**64
    code ^= code >> 33
    code = code * 0xFF51AFD7ED558CCD % 2**64
    code ^= code >> 33
    return code % width


def _unit(row):
    length = math.sqrt(sum(x * x for x in row))
    return [x / length for x in row] if length else row


def text(cells, width):
    bags = [None if c is None else re.findall(r"[a-z0-9\u0080-\U0010ffff]+", c.lower()) for c in cells]
    present = [bag for bag in bags if bag is not None]
    shared = [sum(k in {bucket(word, width) for word in bag} for bag in present) for k in range(width)]
    idf = [math.log((1 + len(present)) / (1 + count)) for count in shared]
    rows = []
    for bag in bags:
        row = [0.0] * width
        for word in bag or []:
            row[bucket(word, width)] += idf[bucket(word, width)]
        rows.append(_unit(row))
    return _beside(rows, cells)


def tags(cells):
    present = [set(cell) for cell in cells if cell is not None]
    counts = {tag: sum(tag in row for row in present) for row in present for tag in row}
    known = sorted(tag for tag, count in counts.items() if count > 1)
    others = min(sum(count for count in counts.values() if count == 1), len(present))
    idf = [math.log((1 + len(present)) / (1 + count)) for count in [*(counts[tag] for tag in known), others]]
    rows = []
    for cell in cells:
        row = [0.0] * (len(known) + 1)
        for tag in cell or []:
            k = known.index(tag) if tag in known else len(known)
            row[k] = idf[k]
        rows.append(_unit(row))
    return _beside(rows, cells)


def vector(cells):
    present = [cell for cell in cells if cell is not None]
    length = math.sqrt(sum(sum(x * x for x in cell) for cell in present) / len(present))
    width = len(present[0])
    return _beside([[0.0] * width if cell is None else [x / length for x in cell] for cell in cells], cells)


def array(rows):
    return np.array(rows, dtype=np.float64)
