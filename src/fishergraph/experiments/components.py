"""Figure 4 from the rows of Table 1: validation accuracy against the number of mixture components."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fishergraph.experiments.plan import COMPONENTS, Column, Rows
from fishergraph.experiments.specs import DATASETS
from fishergraph.experiments.study import band

METHODS = ("fie", "fie-reference", "fie-supervised")


def component_records(columns: Sequence[Column], rows: Rows) -> list[dict[str, Any]]:
    """A record per graph (study), method (curve) and number of components (value): a band of accuracies in percent.

    All other settings are those that Table 1 has chosen. Columns that are not run to their end are left out. Graphs and
    methods are in the order of the table.
    """
    found, graphs = [], list(DATASETS)
    for column in sorted(columns, key=lambda column: (graphs.index(column.dataset), METHODS.index(column.spec.method))):
        stage = column.stages(rows)[-1]
        if stage.name != COMPONENTS or stage.missing(rows):
            continue
        for place, point in enumerate(stage.points):
            accuracies = [100 * value for value in stage.values(place, rows, "val")]
            value = point[column.spec.components or ""]
            found.append({"study": column.dataset, "curve": column.spec.method, "value": value, **band(accuracies)})
    return found
