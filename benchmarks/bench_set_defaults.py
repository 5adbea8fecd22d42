"""Settings of `FisherSetEmbedding`, each a change to its defaults, on the bags that bench_sets.py does not test on.

Three times four folds of that half of the bags; a ridge probe on standardised columns. Changes of less than half a
point are within the noise of the folds.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from bags import BAGS, Bags
from bench_sets import score, selection_half
from common import Rows, parser, print_table
from sklearn.model_selection import StratifiedKFold

from fishergraph import DiagonalMixture, FisherSetEmbedding, Nystrom
from fishergraph._errors import FewPointsWarning

KERNELS = ("identity", Nystrom(bandwidth=0.8))
CHANGES: list[dict[str, Any]] = [
    {},
    *({"n_anchors": p} for p in (1, 8, 16, 64)),
    *({"family__sharpness": s} for s in (0.3, 0.7)),
    *({"dim": d} for d in (128, 512)),
    *({"kernel__bandwidth": b} for b in (0.5, 1.0, 1.5)),
    *({"em__prior": p} for p in (0.0, 3.0)),
    *({"input_map": m} for m in KERNELS),
    *({"em__init": m} for m in ("em", "random")),
    *({"em__n_iter": m} for m in (2, 3)),
    *({"em__e_step": e} for e in ("balanced", "unbalanced")),
    {"kernel": "identity"},
    {"kernel": "identity", "counts": True},
    {"counts": True},
    {"normalize": True},
    *({"family": name} for name in ("diagonal-mixture", "gaussian")),
    *({"family": DiagonalMixture(tangent="score", power=0.5, unit=True), "kernel": k} for k in KERNELS),
]
NAMES = ["digits, 3x3 patches", "digits, places of ink", "docstrings, words"]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--repeats", type=int, default=3, help="times four folds (default 3)")
    options.add_argument(
        "--only", default="", help="changes whose text holds this one, such as 'family' (default: all)"
    )
    args = options.parse_args()
    warnings.filterwarnings("ignore", category=FewPointsWarning)  # few sets have fewer landmarks
    names, changes = (["equal means"], CHANGES[:2]) if args.quick else (NAMES, CHANGES)
    data = {name: BAGS[name]() for name in names}
    data = {name: bags.take(selection_half(bags)) for name, bags in data.items()}
    rows, lines = Rows("set_defaults", args), []
    for change in changes:
        said = ", ".join(f"{key}={value!r}" for key, value in change.items()) or "defaults"
        if args.only not in said:
            continue
        scores = [fold_scores(bags, change, args.repeats, args.threads).mean() for bags in data.values()]
        for name, value in zip(data, scores, strict=True):
            rows.add(data=name, change=said, repeats=args.repeats, val=float(value))
        lines.append([said, *(f"{100 * value:.2f}" for value in scores), f"{100 * np.mean(scores):.2f}"])
        print(*lines[-1], flush=True)
    print()
    print_table(["change", *data, "mean"], lines)


def fold_scores(bags: Bags, change: dict[str, Any], repeats: int, threads: int) -> np.ndarray:
    """Accuracies, (fold,)."""
    scores = []
    for repeat in range(repeats):
        folds = StratifiedKFold(4, shuffle=True, random_state=repeat)
        for number, (fit, val) in enumerate(folds.split(bags.y, bags.y)):
            train, held = bags.take(fit), bags.take(val)
            model = FisherSetEmbedding(random_state=10 * repeat + number, n_jobs=threads).set_params(**change)
            Z = model.fit_transform(train.sets, weights=train.weights)
            scores.append(score(Z, model.transform(held.sets, weights=held.weights), train.y, held.y, "ridge"))
    return np.array(scores)


if __name__ == "__main__":
    main()
