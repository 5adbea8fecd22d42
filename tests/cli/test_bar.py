"""The bar of a command: it moves with the costs of the parts, and ends when the output is written."""

from __future__ import annotations

import numpy as np
import pytest

from fishergraph.cli.console import Bar
from fishergraph.cli.embed import EmbedJob, run_embed
from fishergraph.io.embedding_file import write_embedding
from fishergraph.io.tables import read_nodes


def share(bar: Bar) -> float | None:
    """How far the bar is, from 0 to 1; None while it swings."""
    task = bar.progress.tasks[0]
    return None if task.total is None else task.completed / task.total


def test_parts_move_the_bar_by_their_costs():
    with Bar(quiet=True) as bar:
        with bar("structure", 10) as part:
            part.update(10)
            assert share(bar) is None
        bar.later = {"writing": 2.0}
        bar.expect({"first": 1.0, "second": 5.0})
        with bar("first", 4) as part:
            part.update(2)
            assert share(bar) == pytest.approx(0.5 / 8)
        assert share(bar) == pytest.approx(1 / 8)
        with bar("unknown", 4) as part:
            part.update(4)
        assert share(bar) == pytest.approx(1 / 8)
        with bar("second", 2) as part:
            part.update(9)  # more than there are
            assert share(bar) == pytest.approx(6 / 8)
        with bar("writing", 100):
            assert share(bar) == pytest.approx(6 / 8)
        assert share(bar) == pytest.approx(1)
    assert set(bar.seconds) == {"structure", "first", "unknown", "second", "writing"}


def test_steps_that_are_counted():
    with Bar(quiet=True) as bar:
        bar.expect(4)
        bar.count("one")
        assert share(bar) == pytest.approx(0.25)
    with Bar(quiet=True) as bar:
        bar.expect(1)
        with bar("training", 10) as part:
            part.update(5)
            assert share(bar) == pytest.approx(0.5)


@pytest.mark.parametrize("suffix", [".npz", ".parquet", ".csv", ".tsv.gz"])
def test_writing_tells_of_its_bytes(tmp_path, suffix):
    Z = np.random.default_rng(0).normal(size=(3000, 40)).astype(np.float32)
    told: list[int] = []
    write_embedding(tmp_path / f"z{suffix}", None, Z, advance=told.append)
    assert 0.5 * Z.nbytes < sum(told) < 2 * Z.nbytes
    assert len(told) > 1
    np.testing.assert_allclose(read_nodes(tmp_path / f"z{suffix}")[1], Z, rtol=1e-6)
    write_embedding(tmp_path / f"again{suffix}", None, Z)
    if suffix != ".npz":  # whose entries have the time of their making
        assert (tmp_path / f"again{suffix}").read_bytes()[20:] == (tmp_path / f"z{suffix}").read_bytes()[20:]


def test_the_bar_of_embed_ends_with_the_writing(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    edges, seen = rng.integers(500, size=(2, 4000)), []
    np.savez(tmp_path / "g.npz", edge_index=edges, x=rng.normal(size=(500, 8)))
    move = Bar._move_to

    def watched(self, done):
        move(self, done)
        seen.append((self.progress.tasks[0].description, share(self)))

    monkeypatch.setattr(Bar, "_move_to", watched)
    job = EmbedJob(
        edges=tmp_path / "g.npz",
        nodes=None,
        output=tmp_path / "z.parquet",
        id_column=None,
        drop=[],
        config=None,
        settings={"dim": "16", "n_layers": "1"},
        seed=0,
        jobs=1,
        quiet=True,
    )
    run_embed(job)
    assert {title for title, at in seen if at is None} == {"structure"}  # the costs are counted once X is read
    read = [at for title, at in seen if title == "reading"]  # a bar of its own, because nobody knows the rest yet
    assert read == sorted(read)
    assert read[-1] == pytest.approx(1)
    assert len(set(read)) > 2
    seen = [(title, at) for title, at in seen if at is not None and title != "reading"]
    shares = [at for _, at in seen]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1)
    assert seen[-1][0] == "writing"
    before = [at for title, at in seen if title != "writing"]
    assert max(before) < 0.999
    assert len({at for title, at in seen if title == "writing"}) > 5
    assert len({round(at, 2) for at in shares}) > 15
