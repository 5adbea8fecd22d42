"""The examples run, draw, and show what they say."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from alone import call_alone

pytest.importorskip("matplotlib").use("agg")
plt = pytest.importorskip("matplotlib.pyplot")

FOLDER = Path(__file__).resolve().parents[1] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))
NEEDS = {"fisher_conv": "torch_geometric", "karate_club": "networkx"}
NEEDS |= dict.fromkeys(("own_table", "planes_and_airlines", "messy_table"), "pandas")


def same_group(Z: np.ndarray, groups: Any) -> float:
    """How often the nearest other row is of the same group."""
    groups = np.asarray(groups)
    unit = Z / np.linalg.norm(Z, axis=1, keepdims=True)
    similarity = unit @ unit.T
    np.fill_diagonal(similarity, -2)
    return float(np.mean(groups[similarity.argmax(axis=1)] == groups))


def reaches_farther(names: dict[str, Any]) -> bool:
    """The pictures of n_layers: 1, 5, 13, 25 and 41 nodes."""
    titles = [ax.get_title() for ax in names["figure"].axes]
    return [int(title.split()[-2]) for title in titles] == [1, 5, 13, 25, 41]


def anchors_tell_apart(names: dict[str, Any]) -> bool:
    """The distances of the two sets in the titles of n_anchors: small with one anchor, larger with several."""
    one, two, four = (float(ax.get_title().split()[-2]) for ax in names["figure"].axes[:3])
    return two > 3 * one and four > 3 * one


def sharper_is_narrower(names: dict[str, Any]) -> bool:
    widths = [float(ax.get_title().rpartition("= ")[2]) for ax in names["figure"].axes]
    return widths == sorted(widths) and widths[0] < widths[-1] / 2


# What each example claims, from the names that it leaves behind.
CLAIMS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "bags_of_patches": lambda n: n["scores"]["mean pooling"] < 0.75 and min(list(n["scores"].values())[1:]) > 0.97,
    "clusters_of_characters": lambda n: n["adjusted_rand_score"](n["community"], n["cluster"]) > 0.4,
    "boosted_trees": lambda n: (
        n["scores"]["own columns"] + 0.1 < n["scores"]["with the graph"] < n["scores"]["and labels"] + 0.05
    ),
    "cross_validation": lambda n: np.mean(n["scores"]["transductive"]) > 0.85,
    "few_labels": lambda n: n["scores"]["GraphProbe"].mean() > n["scores"]["LogisticProbe"].mean(),
    "first_map": lambda n: same_group(n["Z"], n["cora"].y) > 0.8,
    "fisher_conv": lambda n: min(max(curve) for curve in n["curves"].values()) > 70,
    "karate_club": lambda n: n["agree"] in (*range(31, 35), *range(4)),
    "missing_links": lambda n: n["areas"]["LinkProbe"] > n["areas"]["similarity"] > n["areas"]["words alone"] + 0.1,
    "larger_than_memory": lambda n: np.array_equal(np.asarray(n["stored"]), n["in_memory"]),
    "messy_table": lambda n: same_group(n["Z"], n["species"]) > 0.9,
    "new_nodes": lambda n: n["probe"].score(n["Z"][n["late"]], n["cora"].y[n["late"]]) > 0.75,
    "own_table": lambda n: same_group(n["Z"], n["town"]) > same_group(n["X"].to_numpy(), n["town"]) + 0.1,
    "paper_figure": lambda n: all(0.8 < r["median"] < 1.2 for r in n["records"] if r["curve"] == "exact"),
    "planes_and_airlines": lambda n: same_group(n["Z"]["planes"], n["makers"]) > 0.9,
    "point_clouds": lambda n: n["accuracy"] > 0.9,
    "structure_beside_noise": lambda n: n["scores"]["X=None"] > n["scores"]["structure=None"] + 0.3,
    "what_n_anchors_does": anchors_tell_apart,
    "what_n_layers_does": reaches_farther,
    "what_sharpness_does": sharper_is_narrower,
    "what_walk_does": lambda n: max(n["scores"][1:]) > n["scores"][0] + 2,
    "whole_graphs": lambda n: n["cross_val_score"](n["classifier"], n["Z"], n["labels"], cv=5).mean() > 0.9,
}


ALONE = {"larger_than_memory"}


def draw_and_check(path: Path) -> None:
    """Run an example, and check its pictures and its claim."""
    names = runpy.run_path(str(path))
    figures = [plt.figure(number) for number in plt.get_fignums()]
    assert figures, "no picture was drawn"
    assert all(figure.axes for figure in figures)
    assert CLAIMS[path.stem](names)


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_draws_what_it_claims(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    if path.stem in NEEDS:
        pytest.importorskip(NEEDS[path.stem])
    monkeypatch.chdir(tmp_path)
    if path.stem in ALONE:
        call_alone("test_examples", "draw_and_check", path)
        return
    monkeypatch.setattr(sys, "argv", [str(path)])
    plt.close("all")
    try:
        draw_and_check(path)
    finally:
        plt.close("all")


def test_every_example_has_a_claim_and_a_place_in_the_gallery():
    names = {path.stem for path in EXAMPLES}
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    listed = [line.partition("(")[2].partition(".py)")[0] for line in readme.splitlines() if line.startswith("- [")]
    assert names == set(CLAIMS)
    assert sorted(listed) == sorted(names)
    assert len(names) >= 12
