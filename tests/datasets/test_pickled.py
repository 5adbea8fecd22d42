"""The parser of pickled arrays: what Planetoid's files hold is read, everything else is refused and nothing is run."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections import defaultdict

import numpy as np
import pytest
import scipy.sparse as sp

from fishergraph.datasets import pickled
from fishergraph.datasets.pickled import parse
from pickles import PLAIN, RECONSTRUCT, array, dtype, file_of, text


def equal(one, two):
    assert type(one) is type(two)
    if isinstance(two, sp.csr_array):
        assert one.shape == two.shape
        for piece in ("data", "indices", "indptr"):
            equal(getattr(one, piece), getattr(two, piece))
    elif isinstance(two, np.ndarray):
        assert one.dtype == two.dtype
        np.testing.assert_array_equal(one, two)
    else:
        assert one == two


RNG = np.random.default_rng(0)
VALUES = [
    RNG.normal(size=(5, 3)),
    RNG.normal(size=7).astype(np.float32),
    np.asfortranarray(RNG.integers(-9, 9, (4, 2), dtype=np.int32)),
    RNG.integers(0, 200, 300, dtype=np.uint8),
    np.zeros((0, 3), dtype=np.int16),
    sp.csr_matrix(RNG.integers(0, 2, (6, 9)).astype(np.float32)),
    defaultdict(list, {k: RNG.integers(0, 10**6, 5).tolist() for k in range(3000)}),
    {0: [1, 2], 70_000: list(range(2500)), 3: []},
    [1, -2, 70_000],
]


@pytest.mark.parametrize("protocol", [2, 3, 4])
@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_values_come_back(value, protocol):
    expected = value
    if isinstance(value, sp.csr_matrix):
        expected = sp.csr_array(value)
    elif isinstance(value, dict):
        expected = dict(value)
    equal(parse(pickle.dumps(value, protocol=protocol)), expected)


def test_arrays_of_python_2_and_of_other_byte_orders():
    numbers = np.array([1.5, -2.0])
    equal(parse(file_of(array(numbers.astype("<f4").tobytes()))), numbers.astype(np.float32))
    equal(parse(file_of(array(numbers.astype(">f8").tobytes(), kind=dtype(b"f8", b">")))), numbers)
    equal(parse(file_of(array(b"\x01\x02", kind=dtype(b"u1", b"|")))), np.array([1, 2], dtype=np.uint8))


MATRIX = b"cscipy.sparse.csr\ncsr_matrix\n)\x81}("
REFUSED = {
    # Raw bytes as pointers to objects: a type of objects that claims to have none.
    "object pointers": (file_of(array(b"A" * 16, kind=dtype(b"O8", b"|"))), "type 'O8', not of numbers"),
    "object pointers, short name": (file_of(array(b"A" * 16, kind=dtype(b"O", b"|"))), "type 'O', not of numbers"),
    "a type with fields": (file_of(array(b"A" * 16, kind=dtype(b"V8", b"|"))), "type 'V8'"),
    "a type with a size of its own": (
        file_of(array(b"A" * 8, kind=dtype(rest=b"NNNK\x08K\x08K\x00"))),
        "state of its own",
    ),
    "a type with flags": (file_of(array(b"A" * 8, kind=dtype(rest=PLAIN[:-1] + b"\x3f"))), "state of its own"),
    "a type within a type": (file_of(array(b"A" * 8, kind=dtype(rest=dtype(b"f8") + PLAIN[1:]))), "state of its own"),
    "an array filled twice": (
        file_of(array(b"A" * 8) + b"(K\x01K\x02\x85" + dtype() + b"\x89" + text(b"A" * 8) + b"tb"),
        "unknown state",
    ),
    "too few bytes": (file_of(array(b"A" * 7)), "7 bytes for an array of shape"),
    "too many bytes": (file_of(array(b"A" * 16)), "16 bytes for an array of shape"),
    "a huge shape": (file_of(array(b"A" * 8, shape=b"J\xff\xff\xff\x7f\x85")), "8 bytes for an array of shape"),
    "a negative shape": (file_of(array(b"A" * 8, shape=b"J\xff\xff\xff\xff\x85")), "one or two counts"),
    "three axes": (file_of(array(b"A" * 8, shape=b"K\x01K\x01K\x02\x87")), "one or two counts"),
    "a shape that is a list": (file_of(array(b"A" * 8, shape=b"](K\x01K\x02e")), "one or two counts"),
    "a list in place of bytes": (
        file_of(RECONSTRUCT + b"(K\x01K\x01\x85" + dtype() + b"\x89]tb"),
        "not made of numbers",
    ),
    "an array never filled": (file_of(RECONSTRUCT), "without content"),
    "a subclass": (file_of(RECONSTRUCT.replace(b"cnumpy\nndarray", b"cnumpy\ndtype")), "other than an array"),
    "a class whose state is set": (file_of(b"cscipy.sparse.csr\ncsr_matrix\nN}U\x01aK\x01s\x86b"), "sets the state"),
    "a matrix without pieces": (file_of(MATRIX + b"U\x06_shapeK\x01K\x01\x86ub"), "pieces missing"),
    "a matrix of arrays that are none": (
        file_of(MATRIX + b"U\x06_shapeK\x01K\x01\x86U\x04data]U\x07indices]U\x06indptr]ub"),
        "pieces are not arrays",
    ),
    "os.system": (file_of(b"cos\nsystem\nU\x02id\x85R"), "it names os.system"),
    "getattr": (file_of(b"c__builtin__\ngetattr\n"), "it names __builtin__.getattr"),
    "a call of a list": (file_of(b"c__builtin__\nlist\n)R"), "calls"),
    "a call of a text": (file_of(b"U\x02id)R"), "calls"),
    "an object other than a matrix": (file_of(b"cnumpy\nndarray\n)\x81"), "other than a CSR matrix"),
    "a persistent id": (file_of(b"Pid\n"), r"instruction b'P' at byte 2"),
    "an extension": (file_of(b"\x82\x01"), "instruction"),
    "a pop": (file_of(b"]0"), "instruction b'0'"),
    "a list that holds itself": (file_of(b"]q\x00h\x00a"), "a second time"),
    "a table that holds itself": (file_of(b"}q\x00K\x00h\x00s"), "a second time"),
    "a list of lists": (file_of(b"]]a"), "integers"),
    "a text referred to again": (file_of(text(b"A" * 1000) + b"q\x00h\x00"), "a second time"),
    "something never remembered": (file_of(b"h\x07"), "a second time"),
    "deep tuples": (file_of(b")" + b"\x85" * 100_000), "tuples within tuples"),
    "a wide stack": (file_of(b"N" * 100_000), "more than 10000 values"),
    "marks": (file_of(b"(" * 100_000), "more than 10000 values"),
    "no mark": (file_of(b"]K\x01e"), "mark"),
    "an empty stack": (file_of(b"a"), "does not exist"),
    "a table of numbers": (file_of(b"}K\x00K\x01s"), "int instead"),
    "a key without value": (file_of(b"}(K\x00u"), "key without value"),
    "a list as key": (file_of(b"}]]s"), "in place of text"),
    "a text": (file_of(b"U\x02id"), "neither array"),
    "two values": (file_of(b"]]"), "2 values"),
    "a length beyond the end": (b"\x80\x02T\xff\xff\xff\xff.", "cut short"),
    "no end": (b"\x80\x02]", "cut short"),
    "a name without end": (file_of(b"c" + b"a" * 1000), "name without end"),
    "protocol 5": (pickle.dumps([1], protocol=5), "protocol"),
    "protocol 0": (pickle.dumps([1], protocol=0), "protocol"),
    "nothing": (b"", "protocol"),
    "another encoding": (file_of(b"c_codecs\nencode\nX\x01\x00\x00\x00aX\x05\x00\x00\x00utf-8\x86R"), "latin1"),
    "texts in place of bytes": (
        file_of(b"c_codecs\nencode\nX\x03\x00\x00\x00\xe2\x82\xacX\x06\x00\x00\x00latin1\x86R"),
        "can't encode",
    ),
    "bytes of a number": (file_of(b"c__builtin__\nbytes\nJ\x00\x00\x00\x7f\x85R"), "makes bytes"),
    "a broken text": (file_of(b"X\x01\x00\x00\x00\xff"), "can't decode"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_everything_else_is_refused(case):
    data, reason = REFUSED[case]
    with pytest.raises(ValueError, match=reason):
        parse(data)


def test_a_matrix_whose_indices_are_not_integers():
    matrix = sp.csr_matrix(np.eye(3, dtype=np.float32))
    matrix.indices = matrix.indices.astype(np.float64)
    with pytest.raises(ValueError, match="integers"):
        parse(pickle.dumps(matrix, protocol=2))


def test_a_matrix_that_is_wide_by_declaration_alone():
    matrix = sp.csr_matrix(np.eye(3, dtype=np.float32))
    matrix.resize(3, 10**9)
    with pytest.raises(ValueError, match="3 entries, got 1,000,000,000"):
        parse(pickle.dumps(matrix, protocol=2))


CRASHES = """
import faulthandler, sys
from pathlib import Path
faulthandler.enable()
from fishergraph.datasets.planetoid import load_pickle
for path in sorted(Path(sys.argv[1]).iterdir()):
    try:
        print(path.name, repr(load_pickle(path)))
    except ValueError as error:
        print(path.name, "refused")
"""


def test_files_of_pointers_do_not_crash_the_process(tmp_path):
    """In a process of its own: with an unpickler these end in a segmentation fault when the array is looked at."""
    for number, code in enumerate((b"O8", b"O", b"O4")):
        (tmp_path / f"{number}").write_bytes(file_of(array(b"\x41" * 16, kind=dtype(code, b"|"))))
    done = subprocess.run([sys.executable, "-c", CRASHES, str(tmp_path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split("\n")) == (0, ["0 refused", "1 refused", "2 refused", ""]), done.stderr


def test_mutated_files_are_read_or_refused():
    """Every byte of small files changed in turn: the same kinds of values, or a ValueError."""
    for value in (np.eye(2, dtype=np.float32), sp.csr_matrix(np.eye(2)), {0: [1], 1: [0]}):
        data = pickle.dumps(value, protocol=2)
        for at in range(len(data)):
            for byte in (0, 1, 41, 75, 113, 133, 255):
                try:
                    found = parse(data[:at] + bytes([byte]) + data[at + 1 :])
                except ValueError:
                    continue
                assert isinstance(found, (np.ndarray, sp.csr_array, dict, list))
                assert not isinstance(found, np.ndarray) or found.dtype.kind in "iuf"


def test_nothing_is_unpickled():
    assert not hasattr(pickled, "pickle")
