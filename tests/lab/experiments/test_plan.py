"""The plan: rounds of a search, the choice on validation accuracy alone, final runs, Figure 4's runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fishergraph.lab.experiments.plan import COMPONENTS, FINAL, Column, by_key, status
from fishergraph.lab.experiments.report import COLUMNS
from fishergraph.lab.experiments.specs import SEARCH_SEED, SPECS, Protocol, Rung, choose_datasets, choose_specs
from fishergraph.lab.rows import new_row
from small_table import DATASET, FIE, SPREAD, WWL


def fill(column, rows, value):
    """Give every missing cell of the last stage a row, with the values that `value(settings)` says."""
    for cell in column.stages(rows)[-1].missing(rows):
        result = value(cell.parameters["settings"])
        if cell.parameters["stage"] == FINAL:
            result = {**result, "test": 0.5}
        rows |= by_key([new_row(cell, result, 1.0)])
    return rows


def test_a_search_has_every_point_of_the_grid_once_and_one_seed():
    (search,) = Column(FIE, DATASET).stages({})
    cells = search.missing({})
    assert search.name == "search 1"
    assert len({cell.key for cell in cells}) == len(cells) == 8
    assert {cell.seed for cell in cells} == {SEARCH_SEED}


def test_with_several_seeds_the_mean_is_what_counts():
    spec = replace(WWL, small=Protocol(grid={"n_iter": (1, 2)}, rungs=(Rung(seeds=2),), seeds=3))
    column = Column(spec, DATASET)
    (search,) = column.stages({})
    assert [cell.seed for cell in search.missing({})] == [SEARCH_SEED, SEARCH_SEED + 1] * 2
    values = {(1, SEARCH_SEED): 0.9, (1, SEARCH_SEED + 1): 0.5, (2, SEARCH_SEED): 0.8, (2, SEARCH_SEED + 1): 0.8}
    rows = by_key(
        [
            new_row(cell, {"val": values[cell.parameters["settings"]["n_iter"], cell.seed]}, 1.0)
            for cell in search.missing({})
        ]
    )
    assert column.stages(rows)[-1].points == ({"n_iter": 2},)  # 0.8 on average, though 0.9 was seen of the other
    assert SPECS["fie"].protocol("cora").rungs == SPECS["fie-reference"].protocol("pubmed").rungs == (Rung(seeds=5),)


def test_the_choice_is_the_best_on_validation_and_the_cheapest_of_equals():
    column = Column(FIE, DATASET)
    rows = fill(column, {}, lambda s: {"val": 0.8 if s["dim"] == 8 and s["n_layers"] == 2 else 0.7, "test": s["dim"]})
    final = column.stages(rows)[-1]
    assert final.name == FINAL
    assert final.points == ({"n_layers": 2, "dim": 8, "n_anchors": 1},)
    assert [cell.seed for cell in final.missing(rows)] == [0, 1, 2]


def test_what_a_row_of_the_search_says_of_the_test_nodes_does_not_matter():
    column = Column(FIE, DATASET)
    chosen = [
        column.stages(fill(column, {}, lambda s, sign=sign: {"val": s["dim"] / 10, "test": sign * s["n_layers"]}))[
            -1
        ].points
        for sign in (1, -1)
    ]
    assert chosen[0] == chosen[1]


def test_the_best_of_a_round_go_on_with_other_settings():
    column = Column(WWL, DATASET)
    rows = fill(column, {}, lambda s: {"val": s["n_iter"] / 10})
    second = column.stages(rows)[-1]
    assert second.name == "search 2"
    assert [point["n_iter"] for point in second.points] == [4, 3]
    assert all("rows" not in cell.parameters["settings"] for cell in second.missing(rows))
    rows = fill(column, rows, lambda s: {"val": -s["n_iter"]})
    assert column.stages(rows)[-1].points == ({"n_iter": 3},)


def test_without_a_grid_there_is_no_search():
    (final,) = Column(SPREAD, DATASET).stages({})
    assert (final.name, len(final.missing({}))) == (FINAL, 2)


def test_figure_4_varies_the_components_and_takes_the_final_runs_where_they_are_the_chosen_ones():
    column = Column(FIE, DATASET, components=True)
    rows = fill(column, {}, lambda s: {"val": s["n_anchors"]})
    rows = fill(column, rows, lambda s: {"val": 0.9})
    stage = column.stages(rows)[-1]
    assert stage.name == COMPONENTS
    assert [point["n_anchors"] for point in stage.points] == [1, 2]
    missing = stage.missing(rows)
    assert {(cell.parameters["settings"]["n_anchors"], cell.seed) for cell in missing} == {(1, 0), (1, 1)}
    assert stage.values(1, rows, "val") == [0.9, 0.9]


def test_the_status_counts_and_ends():
    column, rows = Column(SPREAD, DATASET), {}
    assert (status(column, rows).done, status(column, rows).total, status(column, rows).test) == (0, 2, None)
    result = status(column, fill(column, rows, lambda s: {"val": 0.7}))
    assert (result.done, result.val, result.test, result.finished) == (2, 0.7, 0.5, True)


@pytest.mark.parametrize("name", ["train", "val", "test", "seed", "y"])
def test_nodes_labels_and_seeds_cannot_stand_in_a_grid(name):
    for arguments in ({"grid": {name: (1, 2)}}, {"settings": {name: 1}}, {"rungs": (Rung({name: 1}),)}):
        with pytest.raises(ValueError, match=f"'{name}'"):
            Protocol(**arguments)


def test_the_grids_are_those_of_the_paper():
    small, large = (SPECS["fie"].protocol(name).grid for name in ("cora", "ogbn-arxiv"))
    assert small == {"n_layers": (2, 3, 4), "dim": (128, 256, 512), "n_anchors": (1, 2, 4, 8)}
    assert large == {**small, "n_layers": (3, 4, 5)}
    assert SPECS["fie-reference"].protocol("pubmed").grid == small
    small, large = (SPECS["fie-supervised"].protocol(name).grid for name in ("cora", "reddit"))
    assert small == {"n_layers": (2, 3, 4), "hidden": (16, 32, 64), "heads": (1, 2, 4, 8)}
    assert large == {"n_layers": (3, 4, 5), "hidden": (128, 256), "heads": (1, 2, 4, 8)}
    assert {spec.protocol(name).seeds for spec in SPECS.values() for name in COLUMNS} == {10}
    assert {spec.protocol("ogbn_arxiv_sub18k").seeds for spec in SPECS.values()} == {3}


def test_a_quick_run_gives_trees_one_trial():
    for name in ("sgc", "fie"):
        for dataset in ("ogbn_arxiv_sub18k", "reddit"):
            quick = SPECS[name].protocol(dataset, quick=True)
            for settings in (quick.settings, *(rung.settings for rung in quick.rungs)):
                assert settings["probe_options"] == {"time_budget": None, "n_trials": 1}
        assert "probe_options" not in SPECS[name].protocol("cora", quick=True).settings


def test_unknown_names_list_the_known_ones():
    with pytest.raises(ValueError, match=r"'wwl', .*'fei'"):
        choose_specs(["fei"])
    with pytest.raises(ValueError, match=r"'cora', .*'core'"):
        choose_datasets(["cora", "core"])


def test_a_missing_package_is_named_with_its_pip_line(monkeypatch):
    from fishergraph.lab.experiments import specs

    def absent(module, *, extra):
        raise ImportError(f"pip install 'fishergraph[{extra}]'")

    monkeypatch.setattr(specs, "require", absent)
    choose_specs(["wwl", "fie"])
    with pytest.raises(ImportError, match=r"fishergraph\[torch\]"):
        choose_specs(["wwl", "gat"])
