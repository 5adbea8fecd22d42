"""A disk that fills during an embedding: the error says so, and the same run goes on when there is room again."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

from fishergraph import FisherEmbedding
from fishergraph.scale import StoredEmbedding
from fishergraph.scale.run import LocalExecutor
from scale.stores import random_store, small_budget, small_parts

resource = pytest.importorskip("resource")


def model(**settings):
    return FisherEmbedding(dim=16, structure=None, random_state=3, **settings)


def check_resumed(store, graph, X, monkeypatch):
    """The run goes on with the parts that are missing, and has the bits of one in memory."""
    done = {path.stem for path in (store.path / "embeddings" / "default" / "parts").glob("*.npy")}
    original, computed = LocalExecutor.run, []

    def counted(self, folder, task, log, advance):
        computed.append(task.name)
        original(self, folder, task, log, advance)

    monkeypatch.setattr(LocalExecutor, "run", counted)
    S = model().fit_transform(store)
    np.testing.assert_array_equal(np.asarray(S), model().fit_transform(X, graph=graph))
    assert "psi0" in done
    assert "psi0" not in computed
    assert not list(store.path.rglob("*.new"))


def test_a_file_that_may_not_grow(tmp_path, monkeypatch):
    """The averaged columns are the first array that is larger than the limit."""
    store, graph, X = random_store(tmp_path / "s")
    small_parts(monkeypatch)
    small_budget(monkeypatch)
    model(walk=None).fit_transform(store)  # the multisets are there
    (store.path / "embeddings" / "default").rename(tmp_path / "other")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    limit = 900 * 16 * 4 + 2**10
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        with pytest.raises(OSError, match="too large"):
            model().fit_transform(store)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    check_resumed(store, graph, X, monkeypatch)


@pytest.fixture
def small_disk(tmp_path):
    """A disk of a few megabytes; making one takes rights that a test may not have."""
    path = tmp_path / "disk"
    path.mkdir()
    try:
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", path], capture_output=True, check=False
        )
        if done.returncode:
            pytest.skip(f"no file system can be mounted here: {done.stderr.decode().strip()}")
    except OSError as error:
        pytest.skip(f"no file system can be mounted here: {error}")
    yield path
    subprocess.run(["umount", "-l", path], check=True)


@pytest.mark.parametrize("at", ["layer 1/2", "walking"])
def test_a_disk_that_others_fill(small_disk, monkeypatch, at):
    """There is room when the run begins; another process takes it while a stage is written."""
    store, graph, X = random_store(small_disk / "s")
    small_parts(monkeypatch)
    small_budget(monkeypatch)
    filler = small_disk / "filler"

    @contextmanager
    def progress(title, steps):
        if title == at:
            fill(filler)
        yield SimpleNamespace(update=lambda n: None)

    with pytest.raises(OSError, match="space left"):
        model(verbose=progress).fit_transform(store)
    assert not (store.path / "embeddings" / "default" / "manifest.json").exists()
    filler.unlink()
    check_resumed(store, graph, X, monkeypatch)
    assert StoredEmbedding(store.path / "embeddings" / "default").shape[0] == store.n_nodes


def fill(path):
    """Take all of a disk."""
    with path.open("wb", buffering=0) as file:
        block = bytes(2**16)
        while len(block):
            try:
                file.write(block)
            except OSError:
                block = block[: len(block) // 2]
