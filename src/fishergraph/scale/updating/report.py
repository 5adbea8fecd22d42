"""What `update` says: what came and went, which rows were computed, and whether the model still fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from fishergraph._repr import short_repr

DRIFT = 1.5  # from here on a model should be fitted again
_LEAST_ROWS = 30  # changed rows of a stage, below which their mean says nothing


class StageUpdate(NamedTuple):
    """The update of one stage of one run.

    run, stage : their names.
    how : "rows", gathered into blocks; "blocks", those of a full run; "all", since it needs all rows; or "none".
    n_computed, n_changed, n_rows : rows that were computed, rows that have other bits now, and all rows.
    seconds : what it took.
    """

    run: str
    stage: str
    how: str
    n_computed: int
    n_changed: int
    n_rows: int
    seconds: float


@dataclass(frozen=True)
class UpdateReport:
    """What `update` did.

    Parameters
    ----------
    changes : mapping of str to int
        What came and went: edges (as the store holds them), nodes, and rows of features.
    stages : tuple of StageUpdate
        For every stage of every run the rows that were computed, and those that have other bits now.
    misfits : mapping of str to mapping
        Stage → the share of its rows that landmarks do not express: of rows of the fit, and of the rows that changed.
    seconds : mapping of str to float
        What the parts of the update took.

    See Also
    --------
    update : Makes one.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from fishergraph.scale import update, write_store
    >>> store = write_store(pathlib.Path(tempfile.mkdtemp()) / "path", [(0, 1), (1, 2)], undirected=True)
    >>> report = update(store, edges=[(0, 2)])
    >>> report.changes["edges added"], store.n_edges
    (2, 6)
    """

    changes: Mapping[str, int]
    stages: tuple[StageUpdate, ...] = ()
    misfits: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)

    __repr__ = short_repr

    @property
    def drift(self) -> float:
        """How much worse landmarks express changed rows than those of the fit.

        It is that of the worst stage. 1 is as well as those, and 0 means that too few rows changed to say so. From 1.5
        on the model should be fitted again.
        """
        kept = [entry for entry in self.misfits.values() if entry["rows"] >= _LEAST_ROWS and entry["fit"] > 0]
        return max((entry["changed"] / entry["fit"] for entry in kept), default=0.0)

    @property
    def fit_again(self) -> bool:
        """Whether the new data are so far off that the model should be fitted again."""
        return self.drift >= DRIFT

    def __str__(self) -> str:
        lines = [f"{count:,} {what}" for what, count in self.changes.items() if count] or ["nothing changed"]
        for run, stage, how, computed, changed, n_rows, seconds in self.stages:
            share = f"{computed:,} of {n_rows:,} rows computed"
            kind = {"rows": "", "blocks": ", in whole blocks", "all": ", all since it needs all rows", "none": ""}[how]
            lines.append(f"{run} {stage}: {share}{kind}, {changed:,} changed, {seconds:.2f} s")
        if self.drift:
            advice = "fit again" if self.fit_again else f"below {DRIFT}: the model fits"
            lines.append(f"drift {self.drift:.2f} ({advice})")
        if self.seconds:
            lines.append(", ".join(f"{part} {value:.2f} s" for part, value in self.seconds.items()))
        return "\n".join(lines)
