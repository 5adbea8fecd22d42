"""`verify`: whether a store is whole, and whether two stores, or two runs, hold the same.

Every array is compared with its checksums. Then row blocks of the stages are computed again from the stage before, and
compared bit by bit. Averages over the graph cannot be computed for a few rows: `full` computes whole runs again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from fishergraph._errors import InputError
from fishergraph._parallel import one_blas_thread
from fishergraph._progress import Verbose, progress_bar
from fishergraph._typing import RandomState
from fishergraph._validation import check_flag, check_integer, check_n_jobs, check_random_seed
from fishergraph._version import __version__
from fishergraph.estimators.source import NodeJob
from fishergraph.layer import Run
from fishergraph.scale.arrays import FileArray
from fishergraph.scale.budget import BASE
from fishergraph.scale.compare import compare_runs, compare_stores
from fishergraph.scale.cpu import cpu_target
from fishergraph.scale.finished import FinishedRun, finished_runs, unfinished_runs
from fishergraph.scale.folders import read_json, scratch_folder
from fishergraph.scale.memory import parse_memory
from fishergraph.scale.report import Check, Verification, checked
from fishergraph.scale.run import Capacity, FloatRows, LocalExecutor, compute_run
from fishergraph.scale.run_folder import RunFolder
from fishergraph.scale.sets import build_sets
from fishergraph.scale.stage_rows import StageRows, different_rows, stage_rows
from fishergraph.scale.store import MANIFEST, Store, check_arrays, write_json

Advance = Callable[[int], Any]
_SHOWN = 3  # spans of rows that a difference names


def verify(
    store: Store | str | Path,
    other: Store | str | Path | None = None,
    *,
    sample: int = 8,
    full: bool = False,
    memory: int | float | str | None = None,
    random_state: RandomState = None,
    n_jobs: int | None = None,
    verbose: Verbose = False,
) -> Verification:
    """Say whether a store is whole, or whether two stores or runs hold the same.

    Alone, a store is compared with its checksums: the graph, the features, the multisets, and every run that has
    ended. Then random row blocks of every layer are computed again and compared bit by bit. Two stores are compared by
    the checksums of their manifests, which is quick: verify each of them alone to know that their files are whole.

    Parameters
    ----------
    store : Store or path
        The store; with `other` also one run, ``STORE/embeddings/NAME``.
    other : Store or path, optional
        What it is compared with.
    sample : int, default=8
        Row blocks of every stage that are computed again.
    full : bool, default=False
        Compute every run again as a whole, with the model it learned, beside the store. Without it averages over the
        graph and structural columns are compared with their checksums alone.
    memory : int or str, optional
        Bytes the process may have, such as "4G"; half of the free memory by default.
    random_state : int, RandomState or None, default=None
        Which row blocks are chosen.
    n_jobs : int, optional
        Threads; None uses every core.
    verbose : bool or callable, default=False
        Show progress bars.

    Returns
    -------
    Verification
        What is the same, and what differs.

    See Also
    --------
    Store : A graph on disk.
    update : Change the graph of a store, and its embeddings.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from fishergraph import FisherEmbedding, load_graph
    >>> from fishergraph.scale import verify, write_store
    >>> cora = load_graph("cora")
    >>> store = write_store(pathlib.Path(tempfile.mkdtemp()) / "cora", cora.graph, cora.X)
    >>> Z = FisherEmbedding(dim=16, walk=None, structure=None, random_state=0).fit_transform(store)
    >>> verify(store).is_same
    True
    """
    sample, full = check_integer(sample, "sample", least=0), check_flag(full, "full")
    if other is not None:
        return Verification(tuple(_compared(store, other)))
    rng = check_random_state(check_random_seed(random_state))
    checker = _Checker(_as_store(store), parse_memory(memory), check_n_jobs(n_jobs), verbose)
    with one_blas_thread():
        checks = [*checker.files()]
        for run in finished_runs(checker.store.path):
            checks += checker.run(run, sample, rng, full=full)
    for name in unfinished_runs(checker.store.path):
        checks.append(Check(f"embeddings/{name}", True, "it has not ended", skipped=True))
    return Verification(tuple(checks))


def _as_store(store: Store | str | Path) -> Store:
    return store if isinstance(store, Store) else Store(store)


def _compared(store: Store | str | Path, other: Store | str | Path) -> Iterator[Check]:
    """What two stores, or two runs, have in common."""
    paths = [part.path if isinstance(part, Store) else Path(part) for part in (store, other)]
    runs = [(path / "run.json").is_file() for path in paths]
    if runs[0] != runs[1]:
        expected = "be two stores, or two runs STORE/embeddings/NAME"
        raise InputError(parameter="other", expected=expected, got=f"'{paths[0]}' and '{paths[1]}'")
    if runs[0]:
        return compare_runs(*map(FinishedRun.open, paths))
    return compare_stores(_as_store(store), _as_store(other))


class _Checker:
    """Checks the files of a store."""

    def __init__(self, store: Store, memory: int, n_jobs: int | None, verbose: Verbose):
        self.store, self.memory, self.n_jobs = store, memory, n_jobs
        self.progress = progress_bar(verbose)
        self.bytes = progress_bar(verbose, unit="B")

    def files(self) -> Iterator[Check]:
        """The arrays of the graph and of the multisets, against their checksums."""
        arrays, folder = self.store.manifest["arrays"], self.store.path
        yield from self._arrays("the graph and its features", folder, arrays)
        for path in sorted(folder.glob(f"multisets/*/{MANIFEST}")):
            name = f"multisets/{path.parent.name}"
            yield from self._arrays(name, path.parent, read_json(path)["arrays"], f"{name}/")

    def _arrays(self, name: str, folder: Path, entries: dict[str, Any], prefix: str = "") -> list[Check]:
        total = sum(int(np.prod(entry["shape"])) * np.dtype(entry["dtype"]).itemsize for entry in entries.values())
        missing = [array for array in entries if not (folder / f"{array}.npy").is_file()]
        if missing:
            return [Check(name, False, f"{prefix}{array}.npy is missing") for array in missing]
        with self.bytes(name, total) as bar:
            damaged = check_arrays(folder, entries, bar.update)
        return checked(name, [prefix + text for text in damaged], f"checksums of {', '.join(entries)}")

    def run(self, run: FinishedRun, sample: int, rng: Any, *, full: bool) -> Iterator[Check]:
        """The stages of a run: against their checksums, and computed again."""
        label = f"embeddings/{run.name}"
        whole = True
        for name, entry in run.arrays.items():
            with self.bytes(
                f"{run.name} {name}", int(np.prod(entry["shape"])) * np.dtype(entry["dtype"]).itemsize
            ) as bar:
                damaged = run.damage(name, bar.update)
            whole = whole and not damaged
            yield from checked(f"{label} {name}", damaged, f"checksums of {entry['shape'][0]:,} rows")
        reason = self._objection(run)
        if reason is not None:
            same = run.folder.identity["store"] == self.store.digest
            yield Check(label, same, reason, skipped=same)
            return
        job = replace(run.job(features=self.store.features is not None), n_jobs=self.n_jobs)
        if full:
            yield from self._whole(label, run, job)
        elif whole and sample:
            yield from self._sampled(label, run, job, sample, rng)

    def _objection(self, run: FinishedRun) -> str | None:
        """Why a run cannot be computed again here, or None."""
        identity = run.folder.identity
        if identity["store"] != self.store.digest:
            return "it was made of another graph, or of other features, than the store holds"
        if identity["fishergraph"] != __version__:
            return f"it was made by version {identity['fishergraph']}: its values are not computed again"
        if identity["cpu"] != cpu_target():
            return "it was made on another processor, or with other libraries: its values are not computed again"
        return None

    def _sampled(self, label: str, run: FinishedRun, job: NodeJob, sample: int, rng: Any) -> Iterator[Check]:
        """Some row blocks of every layer, computed again."""
        for name in run.arrays:
            t = job.stack.names.index(name)
            if t > job.stack.n_layers or (t == 0 and self.store.features is None):
                detail = "not computed again: it needs all rows at once (full)"
                yield Check(f"{label} {name}", True, detail, skipped=True)
                continue
            stage = self._stage(run, job, t)
            blocks = stage.blocks()
            chosen = sorted(rng.permutation(len(blocks))[:sample].tolist())
            stored, found = FileArray(run.folder.path / f"{name}.npy"), []

            groups = [np.arange(blocks[k].start, blocks[k].stop) for k in chosen]

            def take(
                k: int, phi: Any, psi: Any, groups: Any = groups, stored: Any = stored, found: Any = found
            ) -> None:
                rows = groups[k]
                found.append(different_rows(rows, psi, stored[int(rows[0]) : int(rows[-1]) + 1]))

            stage.compute(groups, take)
            rows = np.sort(np.concatenate(found)) if found else np.empty(0, int)
            yield _bits(f"{label} {name}", rows, f"{len(chosen)} of {len(blocks)} row blocks computed again")

    def _stage(self, run: FinishedRun, job: NodeJob, t: int) -> StageRows:
        X: Any = None if self.store.features is None else FloatRows(self.store.features)
        dtype = np.dtype(np.float32) if X is None else X.dtype
        sets = build_sets(self.store, job.rule, dtype, memory=self.memory) if t else None
        room = (self.memory - BASE) // 2
        threads = Run(n_jobs=self.n_jobs)
        return stage_rows(job.stack, t, X, sets, lambda name: FileArray(run.folder.path / f"{name}.npy"), threads, room)

    def _whole(self, label: str, run: FinishedRun, job: NodeJob) -> Iterator[Check]:
        """All stages of a run, computed again beside the store with the model it learned."""
        with scratch_folder(self.store.path / "embeddings" / run.name, "verify") as path:
            folder = RunFolder(path)
            write_json(path / "run.json", run.folder.identity)
            compute_run(
                self.store, folder, replace(job, progress=self.progress), Capacity(self.memory), LocalExecutor()
            )
            again = FinishedRun.open(path)
            for name in run.arrays:
                arrays = [FileArray(one.folder.path / f"{name}.npy") for one in (run, again)]
                found = [np.empty(0, int)]
                for part in arrays[0].blocks():
                    found.append(different_rows(np.arange(part.start, part.stop), arrays[0][part], arrays[1][part]))
                yield _bits(f"{label} {name}", np.concatenate(found), "all rows computed again")


def _bits(label: str, rows: np.ndarray, how: str) -> Check:
    """The entry of rows that have other bits now."""
    if len(rows) == 0:
        return Check(label, True, f"{how}: the same bits")
    breaks = np.flatnonzero(np.diff(rows) > 1)
    firsts, lasts = rows[np.append(0, breaks + 1)], rows[np.append(breaks, len(rows) - 1)]
    spans = [f"{a:,} to {b:,}" for a, b in zip(firsts[:_SHOWN], lasts[:_SHOWN], strict=True)]
    more = ", …" if len(firsts) > _SHOWN else ""
    return Check(label, False, f"{how}: {len(rows):,} rows have other bits, {', '.join(spans)}{more}")
