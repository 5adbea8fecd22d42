"""Arrays in files: NumPy's format, rows in any order, past 2³¹ elements, and files that are not what they should be."""

from __future__ import annotations

import os
import pickle
import resource
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

from fishergraph._errors import FileFormatError
from fishergraph.scale.arrays import CHUNK, FileArray, FileRows, Growing, checksum, open_array

RNG = np.random.default_rng(0)
MATRIX = RNG.standard_normal((1000, 7)).astype(np.float32)


@pytest.fixture
def array(tmp_path):
    np.save(tmp_path / "a.npy", MATRIX)
    return FileArray(tmp_path / "a.npy")


# --- the format -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [MATRIX, np.arange(5), np.zeros((0, 3), np.float16), np.arange(9, dtype=np.int32)])
def test_a_new_array_is_the_file_of_numpy(tmp_path, values):
    array = FileArray.create(tmp_path / "a.npy", values.shape, values.dtype)
    array[:] = values
    assert np.array_equal(np.load(tmp_path / "a.npy"), values)
    np.save(tmp_path / "b.npy", values)
    ours, theirs = FileArray(tmp_path / "a.npy"), FileArray(tmp_path / "b.npy")
    assert (ours.shape, ours.dtype, ours.nbytes) == (theirs.shape, theirs.dtype, values.nbytes)
    assert np.array_equal(np.asarray(ours), np.asarray(theirs))


def test_an_array_that_grew_is_the_file_of_one_made_at_once(tmp_path):
    grown = Growing(tmp_path / "a.npy", np.float32, (7,))
    for rows in np.split(MATRIX, [1, 1, 500]):
        grown.append(rows)
    array = grown.finish()
    whole = FileArray.create(tmp_path / "b.npy", MATRIX.shape, MATRIX.dtype)
    whole[:] = MATRIX
    assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "b.npy").read_bytes()
    assert np.array_equal(array[:], MATRIX)


def test_nothing_can_be_appended_to_rows_of_another_width(tmp_path):
    with pytest.raises(ValueError):
        Growing(tmp_path / "a.npy", np.float32, (7,)).append(MATRIX[:, :3])


def test_an_array_goes_to_another_process_by_its_path(array):
    again = pickle.loads(pickle.dumps(array))
    assert again.path == array.path
    assert not again.writable
    assert np.array_equal(again[:], MATRIX)
    with pytest.raises(OSError, match="written"):
        again[0:1] = 0


# --- rows -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rows",
    [
        slice(None),
        slice(10, 20),
        slice(20, 10),
        slice(-5, None),
        slice(990, 5000),
        slice(0, 100, 7),
        0,
        999,
        -1,
        np.array([], dtype=np.int64),
        np.array([3, 3, 900, 901]),
        np.array([900, 3, 3, 0, 999]),
        np.array([-1, 5, -1000]),
        np.arange(1000) % 3 == 0,
        [5, 2, 9],
    ],
    ids=str,
)
def test_rows_are_those_of_numpy(array, rows):
    assert np.array_equal(array[rows], MATRIX[rows])
    assert array[rows].dtype == MATRIX.dtype


@pytest.mark.parametrize("rows", [1000, -1001, np.array([0, 1000]), np.array([-1001])], ids=str)
def test_rows_that_do_not_exist(array, rows):
    with pytest.raises(IndexError):
        array[rows]


def test_an_array_ends_when_it_is_iterated(array):
    assert sum(1 for _ in array) == 1000


def test_a_slice_backwards_is_refused(array):
    with pytest.raises(IndexError, match="forwards"):
        array[::-1]


def test_distant_rows_are_read_apart(tmp_path):
    """Rows near each other are read at once, others not: the bytes between them stay on the disk."""
    wide = FileArray.create(tmp_path / "a.npy", (1000, 1000), np.float64)
    calls = []
    read = wide._read
    wide._read = lambda start, stop: calls.append((start, stop)) or read(start, stop)
    wide[np.array([1, 2, 500, 999])]
    assert calls == [(1, 3), (500, 501), (999, 1000)]


def test_written_rows_are_converted_and_broadcast(tmp_path):
    array = FileArray.create(tmp_path / "a.npy", (4, 2), np.float16)
    array[1:3] = np.array([[1.0, 2.0]])
    assert array[:].tolist() == [[0, 0], [1, 2], [1, 2], [0, 0]]
    with pytest.raises(ValueError):
        array[1:3] = np.zeros((3, 2))
    with pytest.raises(IndexError, match="forwards"):
        array[::2] = 1


def test_blocks_cover_the_rows_once(array):
    blocks = list(array.blocks(28 * 300))
    assert [(rows.start, rows.stop) for rows in blocks] == [(0, 300), (300, 600), (600, 900), (900, 1000)]
    assert [len(array[rows]) for rows in array.blocks(1)] == [1] * 1000


def test_checksums_notice_one_byte(array, tmp_path):
    before = array.checksums()
    assert before == [checksum(MATRIX)]
    with (tmp_path / "a.npy").open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)
        file.seek(-1, os.SEEK_END)
        file.write(bytes([last[0] ^ 1]))
    assert array.checksums() != before


def test_many_readers_at_once(array):
    def read(k):
        rows = np.random.default_rng(k).integers(1000, size=50)
        return np.array_equal(array[rows], MATRIX[rows]) and np.array_equal(array[k : k + 100], MATRIX[k : k + 100])

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read, range(200)))


def test_readers_of_several_processes(array):
    code = "import sys, pickle, hashlib; a = pickle.load(sys.stdin.buffer); print(hashlib.md5(a[:]).hexdigest())"
    runs = [
        subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(3)
    ]
    found = {run.communicate(pickle.dumps(array))[0] for run in runs}
    assert len(found) == 1
    assert found != {b""}


# --- past 2³¹ -------------------------------------------------------------------------------------------


def sparse_file(path, shape, dtype):
    """An array whose bytes take no space: a hole in a file."""
    FileArray.create(path, (0, *shape[1:]), dtype)
    with path.open("r+b") as file:
        np.lib.format.write_array_header_2_0(
            file, {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": shape}
        )
        file.truncate(file.tell() + int(np.prod(shape, dtype=object)) * np.dtype(dtype).itemsize)
    return FileArray(path, writable=True)


@pytest.mark.parametrize("shape", [(2**31 + 1000,), (2**26 + 10, 40)], ids=str)
def test_offsets_past_2_to_the_31(tmp_path, shape):
    array = sparse_file(tmp_path / "a.npy", shape, np.int32)
    last = shape[0] - 1
    array[last : last + 1] = 7
    array[2**26 - 1 : 2**26 + 2] = 5
    assert np.all(array[last] == 7)
    assert np.all(array[-1] == 7)
    chosen = array[np.array([last, 0, 2**26, last - 1])]
    assert chosen.reshape(4, -1)[:, 0].tolist() == [7, 0, 5, 0]
    assert np.all(np.load(tmp_path / "a.npy", mmap_mode="r")[last] == 7)
    blocks = list(array.blocks())
    assert blocks[-1].stop == shape[0]
    assert sum(rows.stop - rows.start for rows in blocks) == shape[0]
    assert (tmp_path / "a.npy").stat().st_blocks * 512 < 2**24


def test_a_read_of_more_than_one_call(tmp_path):
    array = sparse_file(tmp_path / "a.npy", (2**31 + 100,), np.uint8)
    array[2**31 + 98 : 2**31 + 100] = 3
    rows = array[2**31 - 2**30 - 5 :]
    assert len(rows) == 2**30 + 105
    assert rows[-2:].tolist() == [3, 3]


def test_rows_of_a_sparse_matrix_past_2_to_the_31(tmp_path):
    n = 2**31 + 10
    data = sparse_file(tmp_path / "data.npy", (n,), np.float32)
    indices = sparse_file(tmp_path / "indices.npy", (n,), np.int32)
    indptr = FileArray.create(tmp_path / "indptr.npy", (4,), np.int64)
    indptr[:] = [0, n - 3, n - 1, n]
    data[n - 3 : n] = [1, 2, 3]
    indices[n - 3 : n] = [0, 4, 2]
    rows = FileRows(data, indices, indptr, 5)
    assert rows.nnz == n
    assert rows[1:3].toarray().tolist() == [[1, 0, 0, 0, 2], [0, 0, 3, 0, 0]]
    assert rows[np.array([2, 1])].toarray().tolist() == [[0, 0, 3, 0, 0], [1, 0, 0, 0, 2]]


def test_rows_of_a_sparse_matrix_are_those_of_scipy(tmp_path):
    matrix = sp.csr_array(sp.random_array((50, 20), density=0.2, rng=RNG, dtype=np.float32))
    pieces = []
    for name in ("data", "indices", "indptr"):
        np.save(tmp_path / f"{name}.npy", getattr(matrix, name))
        pieces.append(FileArray(tmp_path / f"{name}.npy"))
    rows = FileRows(*pieces, 20)
    assert rows.shape == (50, 20)
    for key in (slice(3, 17), slice(9, 2), np.array([4, 4, 0, 49]), np.array([], dtype=np.int64)):
        assert np.array_equal(rows[key].toarray(), matrix[key].toarray())


# --- files that are not arrays --------------------------------------------------------------------------


def test_a_torn_file_says_what_is_missing(array, tmp_path):
    size = (tmp_path / "a.npy").stat().st_size
    os.truncate(tmp_path / "a.npy", size - 1)
    with pytest.raises(FileFormatError, match=f"{size:,}"):
        FileArray(tmp_path / "a.npy")
    with pytest.raises(FileFormatError, match="ends before row 999"):
        array[990:]
    assert np.array_equal(array[:990], MATRIX[:990])


@pytest.mark.parametrize("content", [b"", b"\x93NUM", b"not an array at all", b"\x93NUMPY\x09\x00\x04\x00abcd"])
def test_another_file(tmp_path, content):
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(FileFormatError, match=r"a\.npy"):
        FileArray(tmp_path / "a.npy")


@pytest.mark.parametrize(
    "values",
    [np.asfortranarray(MATRIX), np.array(3.0), np.array([{}], dtype=object)],
    ids=["columns", "one", "objects"],
)
def test_arrays_without_rows(tmp_path, values):
    np.save(tmp_path / "a.npy", values, allow_pickle=True)
    with pytest.raises(FileFormatError, match="rows"):
        FileArray(tmp_path / "a.npy")


def test_a_header_that_declares_more_than_there_can_be(tmp_path):
    with (tmp_path / "a.npy").open("wb") as file:
        np.lib.format.write_array_header_2_0(file, {"descr": "<i8", "fortran_order": False, "shape": (2**40, 2**40)})
    with pytest.raises(FileFormatError, match="declares"):
        FileArray(tmp_path / "a.npy")


def test_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        open_array(tmp_path / "a.npy")


FULL = """
import resource, signal, sys
import numpy as np
from fishergraph.scale.arrays import FileArray, Growing
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20))
try:
    if sys.argv[2] == "create":
        FileArray.create(sys.argv[1], (2**20,), np.float64)
    else:
        grown = Growing(sys.argv[1], np.float64)
        for _ in range(100):
            grown.append(np.ones(2**14))
except OSError as error:
    print(error)
"""


@pytest.mark.parametrize("how", ["create", "grow"])
def test_a_file_that_cannot_be_as_large(tmp_path, how):
    done = subprocess.run([sys.executable, "-c", FULL, tmp_path / "a.npy", how], capture_output=True, text=True)
    assert done.stderr == ""
    assert "a.npy" in done.stdout
    assert "could not be written" in done.stdout


@pytest.fixture
def small_disk(tmp_path):
    """A disk of one MiB, if this user may mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True).returncode == 0
    except OSError:
        mounted = False
    if not mounted:
        pytest.skip("no disk can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=False)


def test_a_full_disk(small_disk):
    with pytest.raises(OSError, match=r"a\.npy.*No space left"):
        FileArray.create(small_disk / "a.npy", (2**20,), np.float64)
    (small_disk / "a.npy").unlink()
    grown = Growing(small_disk / "b.npy", np.float64)
    with pytest.raises(OSError, match=r"b\.npy.*No space left"):
        grown.append(np.ones(2**18))


def test_open_files_are_closed_with_their_arrays(tmp_path):
    np.save(tmp_path / "a.npy", MATRIX)
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for _ in range(min(2 * limit, 5000)):
        FileArray(tmp_path / "a.npy")
    after = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    assert after <= before + 2


def test_a_chunk_of_a_checksum_is_a_row_at_least(tmp_path):
    wide = sparse_file(tmp_path / "a.npy", (2, CHUNK), np.uint16)
    assert [rows.stop - rows.start for rows in wide.blocks()] == [1, 1]
    assert len(wide.checksums()) == 2


def test_writers_of_different_rows_do_not_disturb_each_other(tmp_path):
    array = FileArray.create(tmp_path / "a.npy", (8000, 3), np.int64)

    def write(k):
        for start in range(k * 1000, (k + 1) * 1000, 10):
            array[start : start + 10] = np.arange(start, start + 10)[:, None]

    threads = [threading.Thread(target=write, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert np.array_equal(array[:], np.repeat(np.arange(8000), 3).reshape(8000, 3))
