"""A run over a store in a process that may be killed: STORE, then the size of a part and of a tile."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import fishergraph.scale.run as run
from fishergraph import FisherEmbedding
from fishergraph.scale import Store, stored_pass


def main(path: str, part_bytes: str, tile: str) -> None:
    stored_pass.PART_BYTES = int(part_bytes)
    plan = run.plan_budget

    def smaller(*args: Any, **options: Any) -> Any:
        budget = plan(*args, **options)
        tiles, groups = dict.fromkeys(budget.tiles, int(tile)), dict.fromkeys(budget.tiles, 2000)
        return replace(budget, tiles=tiles, group_rows=groups, walk_tile=int(tile), sets_in_memory=False)

    run.plan_budget = smaller
    print("ready", flush=True)
    FisherEmbedding(dim=16, random_state=3, n_jobs=1).fit_transform(Store(path))


if __name__ == "__main__":
    main(*sys.argv[1:])
