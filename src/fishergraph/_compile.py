"""Decorators of compiled functions, and the cache of their machine code.

Numba caches the machine code of a function until its file changes. That code contains the functions it calls, which are
in other files: here one stamp covers all of them, so a change in one file invalidates all cached code. A cache that
cannot be written or read is never an error: the code is compiled again.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numba import njit
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, NullCache, _CacheLocator
from numba.core.compiler_lock import global_compiler_lock

# Every file that machine code can be made of; tests/test_compile.py compares this with the imports.
KERNELS = (
    "_compile.py",
    "cores.py",
    "counters.py",
    "diffusion.py",
    "lab/baselines/node2vec.py",
    "multiset/hops.py",
    "multiset/*_search.py",
    "nn/sampling.py",
    "scale/neighbours.py",
    "scale/sets.py",
    "scale/updating/kernels.py",
    "structural/*.py",
    "ops/_numba/*.py",
    "ops/*/numba*.py",
    "device.py",
    "ops/transport/rules.py",
    "tables/kernels.py",
    "vectors/kernels.py",
)


def kernel_files() -> list[Path]:
    """The files that the stamp covers, in order."""
    root = Path(__file__).parent
    return sorted(path for pattern in KERNELS for path in root.glob(pattern))


@cache
def kernel_stamp() -> str:
    """A hash of the names and contents of all files that machine code is made of."""
    content = hashlib.sha256()
    root = Path(__file__).parent
    for path in kernel_files():
        data = path.read_bytes()
        content.update(f"{path.relative_to(root).as_posix()} {len(data)} ".encode() + data)
    return content.hexdigest()


class _TemporaryFolder(_CacheLocator):
    """A private folder in the system's temporary folder: the last resort of a read-only installation."""

    def __init__(self, py_func: Any, py_file: str, folder: Path):
        self._py_file, self._line = py_file, py_func.__code__.co_firstlineno
        self._path = str(folder / self.get_suitable_cache_subpath(py_file))

    def get_cache_path(self) -> str:
        return self._path

    def get_source_stamp(self) -> str:
        return kernel_stamp()

    def get_disambiguator(self) -> str:
        return str(self._line)

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> _TemporaryFolder | None:
        folder = private_temporary_folder()
        if folder is None:
            return None
        locator = cls(py_func, py_file, folder)
        try:
            locator.ensure_cache_path()
        except OSError:
            return None
        return locator


def private_temporary_folder() -> Path | None:
    """A temporary folder that only this user can write to, or None: cached code is executed."""
    if not hasattr(os, "getuid"):
        return None
    try:
        folder = Path(tempfile.gettempdir()) / f"fishergraph-{os.getuid()}"
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        status = folder.lstat()
    except OSError:
        return None
    private = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077
    return folder if private else None


class _Folders(CompileResultCacheImpl):
    """Numba's cache folders, then the temporary one."""

    _locator_classes: ClassVar = [*CompileResultCacheImpl._locator_classes, _TemporaryFolder]


class _Files(IndexDataCacheFile):
    """The index and the machine code of one function.

    The name of a file of machine code contains the stamp and the signature, and the file is written before the index
    that names it. A process that is killed in between, or writes at the same time, cannot make it name other code.
    """

    def __init__(self, cache_path: str, filename_base: str, source_stamp: Any):
        super().__init__(cache_path, filename_base, source_stamp)
        self._base = filename_base
        self._tag = hashlib.sha256(repr(source_stamp).encode()).hexdigest()[:8]

    def save(self, key: Any, data: Any) -> None:
        """Save machine code under its key; the first save after a change removes stale files."""
        overloads = self._load_index()
        if not overloads:
            self._remove_stale()
        name = f"{self._base}.{self._tag}.{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}.nbc"
        self._save_data(name, data)
        self._save_index({**overloads, key: name})

    def _load_index(self) -> dict[Any, str]:
        """The names of files by their keys; empty for a damaged index."""
        try:
            return super()._load_index()
        except Exception:
            return {}

    def _remove_stale(self) -> None:
        for path in Path(self._cache_path).glob(f"{self._base}.*.nbc"):
            if not path.name.startswith(f"{self._base}.{self._tag}."):
                path.unlink(missing_ok=True)


class _KernelCache(FunctionCache):
    """The cache of one function, valid as long as no kernel file changes."""

    _impl_class = _Folders

    def __init__(self, py_func: Any):
        super().__init__(py_func)
        stamp = (self._impl.locator.get_source_stamp(), kernel_stamp())
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The machine code of a signature, or None, also for a damaged file."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save the machine code of a signature, if the disk allows it."""
        with suppress(OSError):
            super().save_overload(sig, data)


def _cache_of(function: Any) -> Any:
    try:
        return _KernelCache(function)
    except (RuntimeError, OSError):  # numba finds no folder for it
        return NullCache()


def _kept(**rules: Any) -> Callable[[Any], Any]:
    """A decorator for functions that Python calls: compiled by these rules at the first call, and cached."""
    compile_ = njit(**rules)

    def decorate(function: Any) -> Any:
        dispatcher: Any = compile_(function)
        if hasattr(dispatcher, "enable_caching"):  # not if NUMBA_DISABLE_JIT is set
            dispatcher._cache = _cache_of(function)
        return dispatcher

    return decorate


def readonly(array: np.ndarray) -> np.ndarray:
    """A read-only view: one compiled version then serves writable and read-only input."""
    view = array.view()
    view.flags.writeable = False
    return view


# "contract" only allows a·b + c as one instruction; infinities are preserved.
_RULES: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}
# "reassoc" also allows vectorised sums; only for sums of finite products.
_LANES = {"contract", "reassoc"}
# Functions that only compiled code calls are cached with their callers. Without wrappers for Python the first call is
# 10 % faster.
_INNER: dict[str, Any] = {**_RULES, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_INNER_EXACTLY: dict[str, Any] = {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_INNER_SUM: dict[str, Any] = {**_INNER, "fastmath": _LANES}

compiled: Any = _kept(**_RULES)
compiled_exactly: Any = _kept(nogil=True)
compiled_sum: Any = _kept(nogil=True, fastmath=_LANES)
inner: Any = njit(**_INNER)
inner_sum: Any = njit(**_INNER_SUM)
inner_exactly: Any = njit(**_INNER_EXACTLY)
# A small function that one or two loops call is inlined first; as a separate function it would be optimised twice.
inlined: Any = njit(inline="always", **_INNER)

if hasattr(os, "register_at_fork"):
    # A child that is forked while another thread compiles would wait forever for that thread.
    os.register_at_fork(
        before=global_compiler_lock.acquire,
        after_in_parent=global_compiler_lock.release,
        after_in_child=global_compiler_lock.release,
    )
