"""Parts computed by the workers of a cluster: the same bytes, also if workers are lost; unfit ones are refused."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

from fishergraph import FisherEmbedding
from fishergraph._errors import ClusterError, InputError
from fishergraph.scale import DaskExecutor, Store, dask_parts, remote, write_store
from fishergraph.scale.dask_executor import make_executor
from fishergraph.scale.dask_parts import Round
from fishergraph.scale.run import LocalExecutor
from fishergraph.scale.run_folder import BegunFolder, RunFolder
from scale.stores import random_graph, random_store, small_budget, small_parts

dask, distributed = pytest.importorskip("dask"), pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def client():
    """A client of two processes."""
    options = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    with distributed.LocalCluster(n_workers=2, **options) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def threads():
    """A client of two workers in this process."""
    options = {"threads_per_worker": 1, "dashboard_address": ":0", "processes": False}
    with distributed.LocalCluster(n_workers=2, **options) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture(autouse=True)
def _no_part_is_computed_here(monkeypatch):
    monkeypatch.setattr(LocalExecutor, "run", None)


def model(**settings) -> FisherEmbedding:
    return FisherEmbedding(**{"dim": 16, "random_state": 3, "n_jobs": 1, **settings})


def reaching(title: str, act):
    """A progress bar that acts when the part of the work of that title moves first."""
    left = [act]

    @contextmanager
    def progress(name: str, steps: int):
        def update(n: int) -> None:
            if name == title and left:
                left.pop()()

        yield SimpleNamespace(update=update)

    return progress


# --- bytes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_nodes", "tiled"), [(1500, False), (900, True)])
def test_bytes_are_those_of_memory(tmp_path, monkeypatch, client, n_nodes, tiled):
    """All blocks: layers, averaged features, structure."""
    store, graph, X = random_store(tmp_path / "s", n_nodes=n_nodes)
    small_parts(monkeypatch)
    if tiled:
        small_budget(monkeypatch)
    expected = model().fit_transform(X, graph=graph)
    S = model().fit_transform(Store(store.path, client=client))
    np.testing.assert_array_equal(np.asarray(S), expected)
    assert not (S.path / "work").exists()


def test_a_fitted_model_embeds_a_graph_without_features(tmp_path, monkeypatch, client):
    graph, _ = random_graph()
    small_parts(monkeypatch)
    bare = model(structure="local").fit(graph=graph)
    store = write_store(tmp_path / "s", graph)
    S = bare.transform(Store(store.path, client=client))
    np.testing.assert_array_equal(np.asarray(S), bare.transform(graph=graph))


def test_a_lost_worker_changes_nothing(tmp_path, monkeypatch, client):
    store, graph, X = random_store(tmp_path / "s", n_nodes=1500)
    small_parts(monkeypatch)
    expected = model().fit_transform(X, graph=graph)
    workers = client.run(os.getpid)
    kill = reaching("layer 2/2", lambda: os.kill(min(workers.values()), signal.SIGKILL))
    S = model(verbose=kill).fit_transform(Store(store.path, client=client))
    np.testing.assert_array_equal(np.asarray(S), expected)
    client.wait_for_workers(2, timeout=60)
    assert set(client.run(os.getpid).values()) != set(workers.values())


def test_a_run_without_workers_stops_and_goes_on(tmp_path, monkeypatch, client):
    store, graph, X = random_store(tmp_path / "s")
    small_parts(monkeypatch)
    options = {"threads_per_worker": 1, "dashboard_address": ":0", "processes": False}
    with distributed.LocalCluster(n_workers=1, **options) as cluster, distributed.Client(cluster) as lonely:
        stop = reaching("layer 1/2", lambda: cluster.scale(0))
        executor = DaskExecutor(lonely, patience=0.5)
        with pytest.raises(ClusterError) as caught:
            model(verbose=stop).fit_transform(Store(store.path, client=executor))
        assert "no worker" in caught.value.reason
    S = model().fit_transform(Store(store.path, client=client))
    np.testing.assert_array_equal(np.asarray(S), model().fit_transform(X, graph=graph))


@pytest.fixture
def scheduler(tmp_path):
    """The file and the process of a scheduler that has a worker; both are processes of their own."""
    address = tmp_path / "scheduler.json"
    command, options = [sys.executable, "-m"], ["--scheduler-file", str(address), "--no-dashboard"]
    started = [subprocess.Popen([*command, "distributed.cli.dask_scheduler", "--port", "0", *options])]
    try:
        while not address.exists() and started[0].poll() is None:
            time.sleep(0.05)
        worker = [*command, "distributed.cli.dask_worker", "--nthreads", "1", "--no-nanny", *options]
        started.append(subprocess.Popen(worker))
        yield address, started[0]
    finally:
        for process in started:
            process.kill()
            process.wait()


@pytest.mark.slow
def test_a_scheduler_that_dies_stops_the_run_which_goes_on_elsewhere(tmp_path, monkeypatch, client, scheduler):
    store, graph, X = random_store(tmp_path / "s")
    small_parts(monkeypatch)
    address, process = scheduler
    executor = DaskExecutor(str(address))
    with pytest.raises(ClusterError) as caught:
        model(verbose=reaching("layer 1/2", process.kill)).fit_transform(Store(store.path, client=executor))
    assert "connection" in caught.value.reason
    assert "run again" in caught.value.advice
    S = model().fit_transform(Store(store.path, client=client))
    np.testing.assert_array_equal(np.asarray(S), model().fit_transform(X, graph=graph))


# --- what is refused -------------------------------------------------------------------------------------

FAKES = {
    "cpu is 'other'": "import fishergraph.scale.remote as r; r.cpu_target = lambda: {'cpu': 'other'}",
    "version 0.0": "import fishergraph.scale.remote as r; r.__version__ = '0.0'",
    "fishergraph": "import sys; sys.modules['fishergraph.scale.dask_executor'] = None",
}
REPAIR = """
import sys
from fishergraph import __version__
from fishergraph.scale import cpu, remote
remote.cpu_target, remote.__version__ = cpu.cpu_target, __version__
if sys.modules["fishergraph.scale.dask_executor"] is None:
    del sys.modules["fishergraph.scale.dask_executor"]
"""


@pytest.mark.parametrize("words", FAKES)
def test_an_unfit_worker_is_refused(tmp_path, client, words):
    store, *_ = random_store(tmp_path / "s", n_nodes=100)
    worker = sorted(client.nthreads())[1]
    client.run(exec, FAKES[words], workers=[worker])
    try:
        with pytest.raises(ClusterError) as caught:
            model(n_layers=0).fit_transform(Store(store.path, client=client))
    finally:
        client.run(exec, REPAIR, workers=[worker])
    assert worker in caught.value.where
    assert words in caught.value.reason


def test_a_worker_that_sees_other_files_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(remote, "_SEEN_SOON", 0.0)
    folder = RunFolder.begin(tmp_path / "run", {"a": 1}, overwrite=False)
    digest = remote.digest_of(folder.path / "run.json")
    assert "does not see" in remote.probe(str(tmp_path / "elsewhere"), digest)["reason"]
    assert "another file" in remote.probe(str(folder.path), "0")["reason"]


def test_a_scheduler_that_is_not_there():
    start = time.monotonic()
    with pytest.raises(ClusterError) as caught, make_executor("tcp://127.0.0.1:9")._connected(None):
        pass
    assert "no scheduler" in caught.value.reason
    assert time.monotonic() - start < 30


def test_a_scheduler_without_workers(tmp_path):
    store, *_ = random_store(tmp_path / "s", n_nodes=100)
    options = {"n_workers": 0, "dashboard_address": ":0", "processes": False}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        executor = DaskExecutor(client, patience=0.2)
        with pytest.raises(ClusterError) as caught:
            model().fit(Store(store.path, client=executor))
    assert "no worker" in caught.value.reason


def test_more_memory_than_a_worker_has(tmp_path, client):
    store, *_ = random_store(tmp_path / "s", n_nodes=100)
    with pytest.raises(InputError) as caught:
        model().fit(Store(store.path, client=client, memory="900T"))
    assert caught.value.parameter == "memory"


@pytest.mark.parametrize("where", [0, -1, True, "node1", "", 2.5, object()])
def test_what_is_no_cluster_is_refused(where):
    with pytest.raises(InputError) as caught:
        make_executor(where)
    assert caught.value.parameter == "client"


@pytest.mark.parametrize(("where", "known"), [("3", 3), (2, 2), ("tcp://a:1", "tcp://a:1"), ("s.json", "s.json")])
def test_what_a_cluster_may_be(where, known):
    executor = make_executor(where)
    assert executor.where == known
    assert make_executor(executor) is executor


# --- parts on workers ------------------------------------------------------------------------------------


def doubled(parts: list[int]) -> list[int]:
    return [2 * part for part in parts]


def results(client, function, groups, patience: float = 5.0) -> list[tuple[int, int]]:
    def submit(parts, **options):
        return client.submit(function, parts, pure=False, **options)

    found: list[tuple[int, int]] = []
    for parts, values in Round(client, submit, "x", groups, patience):
        found += zip(parts, values, strict=True)
    return sorted(found)


def test_every_part_is_computed_once(threads):
    groups = [[0, 1, 2], *([part] for part in range(3, 60))]
    assert results(threads, doubled, groups) == [(part, 2 * part) for part in range(60)]
    assert results(threads, doubled, []) == []


def test_a_passing_error_is_tried_again(threads, tmp_path):
    def fails_once(parts):
        path = tmp_path / str(parts[0])
        if not path.exists():
            path.touch()
            raise OSError(errno.ESTALE, "stale")
        return doubled(parts)

    assert results(threads, fails_once, [[0], [1]]) == [(0, 0), (1, 2)]


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), ValueError("wrong"), ClusterError(where="w")])
def test_an_error_that_stays_is_raised(threads, error):
    def fails(parts):
        raise error

    with pytest.raises(type(error)):
        results(threads, fails, [[0]])


def test_a_worker_whose_memory_is_too_small_says_so(threads):
    def fails(parts):
        raise np._core._exceptions._ArrayMemoryError((2**40,), np.dtype(float))

    with pytest.raises(ClusterError) as caught:
        results(threads, fails, [[3]])
    assert "memory is too small for parts [3] of x" in caught.value.reason
    assert "smaller memory=" in caught.value.advice


@pytest.mark.slow
def test_workers_that_the_system_kills_are_given_up(tmp_path):
    def dies(parts):  # as a process that takes more memory than there is
        os.kill(os.getpid(), signal.SIGKILL)

    options = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        distributed.LocalCluster(n_workers=1, **options) as cluster,
        distributed.Client(cluster) as client,
        pytest.raises(ClusterError) as caught,
    ):
        results(client, dies, [[7]], patience=60)
    assert "parts [7] of x" in caught.value.reason
    assert "memory" in caught.value.advice


def test_parts_of_a_slow_worker_are_computed_by_another(threads, monkeypatch):
    monkeypatch.setattr(dask_parts, "_SLOW_SECONDS", 0.2)
    monkeypatch.setattr(dask_parts, "_LOOKS_EVERY", 0.1)
    slow = sorted(threads.nthreads())[0]

    def stuck_on_one(parts):
        if distributed.get_worker().address == slow and parts[0] > 3:
            time.sleep(4)
        return doubled(parts)

    start = time.monotonic()
    assert results(threads, stuck_on_one, [[part] for part in range(12)]) == [(part, 2 * part) for part in range(12)]
    assert time.monotonic() - start < 4


def test_workers_create_nothing(tmp_path):
    folder = BegunFolder(tmp_path)
    for make in (lambda: folder.array("psi0", (2, 2), np.float32), lambda: folder.log("psi0", 2)):
        with pytest.raises(OSError, match="psi0"):
            make()
    assert not list(tmp_path.iterdir())
