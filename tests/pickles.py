"""Pickles by hand, as Python 2 wrote them: arrays of any type, sound or hostile."""

from __future__ import annotations

RECONSTRUCT = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
PLAIN = b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00"  # no subtype, names or fields; size and alignment as usual; flags


def text(content: bytes) -> bytes:
    return b"T" + len(content).to_bytes(4, "little") + content


def dtype(code: bytes = b"f4", order: bytes = b"<", rest: bytes = PLAIN) -> bytes:
    """A type as Python 2 writes it."""
    return b"cnumpy\ndtype\n" + text(code) + b"K\x00K\x01\x87R(K\x03" + text(order) + rest + b"tb"


def array(content: bytes, shape: bytes = b"K\x02\x85", kind: bytes | None = None, order: bytes = b"\x89") -> bytes:
    """An array as Python 2 writes it."""
    return RECONSTRUCT + b"(K\x01" + shape + (dtype() if kind is None else kind) + order + text(content) + b"tb"


def file_of(program: bytes) -> bytes:
    return b"\x80\x02" + program + b"."
