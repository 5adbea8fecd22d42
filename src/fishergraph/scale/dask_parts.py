"""`Round`: the missing parts of one task on the workers of a cluster, until all are there.

Few parts are sent ahead. Those of a lost worker are sent again by Dask, those of a slow one by us, to another worker.
"""

from __future__ import annotations

import errno
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, Queue
from typing import Any

from fishergraph._errors import ClusterError, FishergraphError

_AHEAD = 2  # submissions per worker
_MOST_PARTS = 8  # of a submission
_SUBMISSIONS = 4  # per worker, at least, if there are so many parts
_TRIES = 3
_FULL = (errno.ENOSPC, errno.EDQUOT)
_MORE_MEMORY = "give workers more memory, or set a smaller memory=, and run again to go on"
_LOOKS_EVERY, _FETCHED_WITHIN = 1.0, 10.0  # seconds
# A submission that takes so many times as long as others, and so many seconds, is sent to another worker too.
_SLOWER, _SLOW_SECONDS = 3.0, 10.0


@dataclass(eq=False)
class _Sent:
    """A submission: parts, the futures that compute them, and how often that failed."""

    parts: list[int]
    futures: list[Any] = field(default_factory=list)
    since: float = 0.0
    failures: int = 0


class Round:
    """Yields parts and their checksums as they are finished.

    Parameters
    ----------
    client : Client
        Of the cluster.
    submit : callable
        (parts, **options) → a future of their checksums.
    name : str
        Of the task.
    groups : list of list of int
        Parts that share work.
    patience : float
        Seconds without any worker after which to stop.
    """

    def __init__(self, client: Any, submit: Callable[..., Any], name: str, groups: list[list[int]], patience: float):
        self.client, self.submit, self.name, self.patience = client, submit, name, patience
        self.waiting: deque[_Sent] = deque()
        self.running: list[_Sent] = []
        self.done: Queue[tuple[_Sent, Any]] = Queue()
        self.seconds: list[float] = []
        self._seen = self._looked = time.monotonic()
        self.n_workers = self._workers()
        most = min(max(sum(map(len, groups)) // (_SUBMISSIONS * max(self.n_workers, 1)), 1), _MOST_PARTS)
        for group in groups:
            if self.waiting and len(self.waiting[-1].parts) + len(group) <= most:
                self.waiting[-1].parts += group
            else:
                self.waiting.append(_Sent(list(group)))

    def __iter__(self) -> Iterator[tuple[list[int], list[int]]]:
        try:
            while self.waiting or self.running:
                self._send_some()
                sent, future = self._next()
                if sent in self.running and future in sent.futures:
                    checksums = self._result(sent, future)
                    if checksums is not None:
                        yield sent.parts, checksums
                if time.monotonic() - self._looked > _LOOKS_EVERY:
                    self._look()
        finally:
            with suppress(Exception):
                self.client.cancel([future for sent in self.running for future in sent.futures])

    def _workers(self) -> int:
        """The number of workers."""
        try:
            return len(self.client.nthreads())
        except (OSError, RuntimeError) as error:
            where = f"the scheduler {self.client.scheduler.address if self.client.scheduler else ''}".strip()
            reason, advice = f"the connection to it was lost ({error})", "start it, and run again to go on"
            raise ClusterError(where=where, reason=reason, advice=advice) from None

    def _send_some(self) -> None:
        while self.waiting and len(self.running) < _AHEAD * max(self.n_workers, 1):
            sent = self.waiting.popleft()
            self._send(sent)
            self.running.append(sent)

    def _send(self, sent: _Sent, **options: Any) -> None:
        future = self.submit(sent.parts, **options)
        sent.futures.append(future)
        sent.since = time.monotonic()
        future.add_done_callback(lambda future: self.done.put((sent, future)))

    def _next(self) -> tuple[Any, Any]:
        """A submission and its future that ended; nothing if none did for a while."""
        try:
            return self.done.get(timeout=_LOOKS_EVERY)
        except Empty:
            return None, None

    def _result(self, sent: _Sent, future: Any) -> list[int] | None:
        """The checksums of a submission that ended; None if it has to wait for another try."""
        if future.status == "finished":
            with suppress(Exception):  # its worker may be lost by now, with the checksums
                checksums = future.result(timeout=_FETCHED_WITHIN)
                self.running.remove(sent)
                self.seconds.append(time.monotonic() - sent.since)
                self.client.cancel([other for other in sent.futures if other is not future])
                return checksums
        sent.futures.remove(future)
        if future.status == "error":
            self._failed(sent, future.exception())
        if not sent.futures:  # no other worker computes the same
            self.running.remove(sent)
            self.waiting.appendleft(sent)
        return None

    def _failed(self, sent: _Sent, error: BaseException) -> None:
        """Raise the error of a submission, unless another try may help."""
        from distributed.scheduler import KilledWorker

        sent.failures += 1
        if isinstance(error, KilledWorker):
            where = f"the worker {getattr(error.last_worker, 'address', error.last_worker)}"
            reason = f"it was lost while it computed parts {sent.parts} of {self.name}, as others were before it"
            raise ClusterError(where=where, reason=reason, advice=_MORE_MEMORY) from None
        if isinstance(error, FishergraphError):
            raise error
        if isinstance(error, MemoryError):
            reason = f"its memory is too small for parts {sent.parts} of {self.name} ({error})"
            raise ClusterError(where="a worker", reason=reason, advice=_MORE_MEMORY) from None
        if isinstance(error, (ImportError, AttributeError)):
            reason = f"it cannot use this version of fishergraph ({error})"
            raise ClusterError(where="a worker", reason=reason, advice="install it there") from None
        passes = isinstance(error, OSError) and error.errno not in _FULL
        if not passes or sent.failures >= _TRIES:
            raise error

    def _look(self) -> None:
        """Count the workers, and send what takes long to one that has nothing to do."""
        self._looked = time.monotonic()
        self.n_workers = self._workers()
        if self.n_workers:
            self._seen = self._looked
        elif self._looked - self._seen > self.patience:
            reason = f"it has had no worker for {self.patience:g} seconds"
            where, advice = f"the scheduler {self.client.scheduler.address}", "start some, and run again to go on"
            raise ClusterError(where=where, reason=reason, advice=advice)
        if self.waiting or len(self.running) >= self.n_workers or not self.seconds:
            return
        slow = max(_SLOWER * sum(self.seconds) / len(self.seconds), _SLOW_SECONDS)
        late = [sent for sent in self.running if len(sent.futures) == 1 and self._looked - sent.since > slow]
        if late:
            oldest = min(late, key=lambda sent: sent.since)
            others = [worker for worker, keys in self.client.processing().items() if oldest.futures[0].key not in keys]
            if others:
                self._send(oldest, workers=others)
