"""Row blocks and threads: fixed borders, results in order, BLAS held and given back."""

import os
import signal
import subprocess
import sys
import threading
import time
from functools import cache

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

from fishergraph import _parallel
from fishergraph._parallel import BLOCK_ROWS, map_blocks, n_threads, one_blas_thread, per_thread, row_blocks


@pytest.fixture(autouse=True)
def two_blas_threads():
    """So that a BLAS which is not given back shows, also where it has one thread to begin with."""
    with threadpool_limits(limits=2, user_api="blas"):
        yield


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


@pytest.mark.parametrize(
    ("n", "size", "count"),
    [(0, 4, 0), (1, 4, 1), (4, 4, 1), (5, 4, 2), (9, 4, 4), (1025, 512, 4), (3, 1, 3), (2708, 512, 6)],
)
def test_blocks_cover_the_rows_once_and_are_as_long_as_each_other(n, size, count):
    blocks = row_blocks(n, size)
    assert [row for block in blocks for row in range(n)[block]] == list(range(n))
    assert len(blocks) == count
    lengths = {block.stop - block.start for block in blocks}
    assert all(0 < length <= size for length in lengths)
    assert max(lengths, default=0) - min(lengths, default=0) <= 1


def test_the_default_block_is_512_rows():
    assert BLOCK_ROWS == 512
    assert row_blocks(512) == [slice(0, 512)]
    assert row_blocks(513) == [slice(0, 256), slice(256, 513)]


@pytest.mark.parametrize("n_jobs", [1, 2, 3, None])
def test_results_come_in_block_order(n_jobs):
    def slow_first(block):
        time.sleep(0.02 if block.start == 0 else 0)
        return block.start

    assert map_blocks(slow_first, row_blocks(50, 5), n_jobs=n_jobs) == list(range(0, 50, 5))


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_progress_runs_in_the_callers_thread_and_counts_every_block(n_jobs):
    told = []
    map_blocks(
        lambda _: time.sleep(0.002),
        row_blocks(50, 5),
        n_jobs=n_jobs,
        advance=lambda n: told.append((threading.get_ident(), n)),
    )
    assert {thread for thread, _ in told} == {threading.get_ident()}
    assert sum(n for _, n in told) == 10
    assert min(n for _, n in told) > 0
    assert len(told) == 10 or n_jobs > 1


def test_the_callers_thread_works_too():
    assert threading.get_ident() in map_blocks(
        lambda _: time.sleep(0.002) or threading.get_ident(), row_blocks(20, 1), n_jobs=2
    )


def test_no_block_is_no_work():
    assert map_blocks(lambda _: 1 / 0, [], n_jobs=2) == []


def test_several_jobs_are_several_threads_and_one_job_is_the_callers():
    barrier = threading.Barrier(2, timeout=20)

    def meet(_):
        barrier.wait()  # only two blocks that run at the same time pass
        return threading.get_ident()

    assert len(set(map_blocks(meet, row_blocks(2, 1), n_jobs=2))) == 2
    assert set(map_blocks(lambda _: threading.get_ident(), row_blocks(3, 1), n_jobs=1)) == {threading.get_ident()}


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_in_a_block_is_raised_and_blas_is_given_back(n_jobs):
    before = blas_threads()

    def fail(block):
        if block.start == 5:
            raise KeyError("five")

    with pytest.raises(KeyError, match="five"):
        map_blocks(fail, row_blocks(30, 5), n_jobs=n_jobs)
    assert blas_threads() == before


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_after_an_error_no_block_is_begun_and_the_first_error_is_raised(n_jobs):
    begun = []

    def fail(block):
        begun.append(block.start)
        time.sleep(0.02 if block.start == 0 else 0)  # so that the others fail before it
        raise KeyError(block.start)

    with pytest.raises(KeyError, match=r"^0$"):
        map_blocks(fail, row_blocks(30, 1), n_jobs=n_jobs)
    assert len(begun) <= n_jobs


def test_every_thread_has_the_callers_error_state():
    barrier = threading.Barrier(2, timeout=20)

    def divide(_):
        barrier.wait()  # one block in each thread
        with pytest.raises(FloatingPointError):
            np.ones(2) / np.zeros(2)

    with np.errstate(divide="raise"):
        map_blocks(divide, range(2), n_jobs=2)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupted_caller_leaves_no_thread_behind(n_jobs):
    before, done = threading.active_count(), []

    def interrupt(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        map_blocks(lambda k: done.append(time.sleep(0.005)), range(100), n_jobs=n_jobs, advance=interrupt)
    assert threading.active_count() == before
    assert len(done) < 100


def test_blas_is_held_inside_also_when_nested():
    before = blas_threads()
    assert 2 in before, "NumPy has a BLAS that threadpoolctl knows"
    with one_blas_thread():
        assert set(blas_threads()) == {1}
        with one_blas_thread():
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {1}
    assert blas_threads() == before


def test_n_jobs_counts_threads(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    cores = n_threads(None)
    assert cores >= 1
    assert n_threads(-1) == cores
    assert n_threads(3) == 3
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert n_threads(None) == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "no number")
    assert n_threads(None) == cores


@pytest.mark.skipif(n_threads(-1) < 2 or not hasattr(os, "sched_setaffinity"), reason="needs two cores and Linux")
def test_cores_that_are_taken_away_are_not_counted(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    cores = os.sched_getaffinity(0)
    assert n_threads(None) > 1
    os.sched_setaffinity(0, {min(cores)})
    try:
        assert n_threads(None) == 1
    finally:
        os.sched_setaffinity(0, cores)
    assert n_threads(None) > 1


def test_a_product_by_blocks_has_the_same_bits_at_any_number_of_threads():
    x = np.random.default_rng(0).normal(size=(3000, 60)).astype(np.float32)
    results = [
        np.concatenate(map_blocks(lambda rows: x[rows] @ x[:40].T, row_blocks(3000), n_jobs=n_jobs))
        for n_jobs in (1, 2, 3)
    ]
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])


def test_blas_is_looked_for_once(monkeypatch):
    """It is held in every call; a search for the libraries each time took longer than a small call's work."""
    searches = []
    monkeypatch.setattr(_parallel, "_libraries", cache(_parallel._libraries.__wrapped__))
    monkeypatch.setattr(_parallel, "ThreadpoolController", lambda: searches.append(1) or ThreadpoolController())
    for _ in range(10):
        with one_blas_thread():
            pass
    assert searches == [1]


def test_every_thread_has_scratch_of_its_own():
    made, meet = [], threading.Barrier(2)
    own = per_thread(lambda: made.append(object()) or made[-1])

    def twice(_: slice) -> object:
        meet.wait(10)
        first = own()
        assert own() is first
        return first

    one, two = map_blocks(twice, [slice(0, 1), slice(1, 2)], n_jobs=2)
    assert one is not two
    assert len(made) == 2


def test_a_blas_that_is_loaded_later_is_held_too():
    code = """
import numpy, threadpoolctl
from fishergraph._parallel import one_blas_thread
with one_blas_thread():
    pass
import scipy.linalg
with threadpoolctl.threadpool_limits(limits=2, user_api="blas"), one_blas_thread():
    late = [library["num_threads"] for library in threadpoolctl.threadpool_info() if library["user_api"] == "blas"]
assert late and set(late) == {1}, late
"""
    subprocess.run([sys.executable, "-c", code], check=True)


# --- other threads, other processes ---------------------------------------------------------------------


def in_thread(function):
    results = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join()
    return results[0]


def held() -> list[int]:
    with one_blas_thread():
        return blas_threads()


def test_blas_is_held_in_every_thread_whichever_was_the_first():
    """Since 3.8 threadpoolctl ignores all threads but the first that set a limit."""
    before = blas_threads()
    assert set(held()) == {1}
    assert set(in_thread(held)) == {1}
    assert blas_threads() == before


def test_blas_is_given_back_by_another_thread_than_the_one_that_took_it():
    before, entered, leave = blas_threads(), threading.Event(), threading.Event()

    def first():
        with one_blas_thread():
            entered.set()
            leave.wait(20)

    thread = threading.Thread(target=first)
    thread.start()
    assert entered.wait(20)
    with one_blas_thread():
        leave.set()
        thread.join()
        assert set(blas_threads()) == {1}
    assert blas_threads() == before


def forked(work) -> int:
    """The exit code of a child that does `work`, which is killed after twenty seconds."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if work() else 2
        finally:
            os._exit(code)
    for _ in range(2000):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -signal.SIGKILL


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process")  # of Python 3.12, which warns of forks beside threads
def test_a_child_that_is_forked_while_another_thread_works_works_too():
    x = np.random.default_rng(0).normal(size=(1024, 200)).astype(np.float32)

    def work():
        return np.concatenate(map_blocks(lambda rows: x[rows] @ x[:128].T, row_blocks(1024, 128), n_jobs=2))

    expected, stop = work(), threading.Event()
    free = blas_threads()

    def child():
        begun = blas_threads()
        return begun == free and set(held()) == {1} and np.array_equal(work(), expected) and blas_threads() == free

    def busy():
        while not stop.is_set():
            work()

    thread = threading.Thread(target=busy, daemon=True)
    thread.start()
    try:
        assert [forked(child) for _ in range(8)] == [0] * 8
    finally:
        stop.set()
        thread.join(20)
    assert not thread.is_alive()
    assert blas_threads() == free


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process")
def test_a_child_that_is_forked_inside_leaves_as_if_it_had_not_entered():
    free = blas_threads()

    def child():
        begun = blas_threads()
        block.__exit__(None, None, None)
        return begun == free and set(held()) == {1} and blas_threads() == free

    block = one_blas_thread()
    block.__enter__()
    try:
        assert forked(child) == 0
        assert set(blas_threads()) == {1}
    finally:
        block.__exit__(None, None, None)
    assert blas_threads() == free


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process")
def test_a_child_that_is_forked_while_another_thread_compiles_can_compile():
    from numba.core.compiler_lock import global_compiler_lock

    import fishergraph._compile  # noqa: F401

    compiling, compiled = threading.Event(), threading.Event()

    def compile_slowly():
        with global_compiler_lock:
            compiling.set()
            time.sleep(0.3)
            compiled.set()

    def child():
        with global_compiler_lock:
            return compiled.is_set()

    thread = threading.Thread(target=compile_slowly)
    thread.start()
    assert compiling.wait(20)
    assert forked(child) == 0
    thread.join()
