"""Small graphs in the layouts in which large ones are published, and a web server that can break off."""

from __future__ import annotations

import gzip
import hashlib
import io
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import scipy.sparse as sp

N, D, E = 30, 5, 70


def example(seed: int = 0) -> dict[str, np.ndarray]:
    """Edges in one direction with a loop, a repeated and a mutual one; features, labels, a split of 18, 5, 7 nodes."""
    rng = np.random.default_rng(seed)
    edges = rng.integers(0, N, (E, 2))
    edges[:4] = [[3, 3], [1, 2], [1, 2], [2, 1]]
    order = rng.permutation(N)
    return {
        "edges": edges,
        "x": rng.normal(size=(N, D)).astype(np.float32),
        "y": rng.integers(0, 4, N),
        "train": np.sort(order[:18]),
        "val": np.sort(order[18:23]),
        "test": np.sort(order[23:]),
    }


def both_ways(edges: np.ndarray, *, loops: bool = True) -> np.ndarray:
    """The dense symmetric 0/1 matrix, edge by edge."""
    A = np.zeros((N, N))
    for a, b in edges:
        if a != b or loops:
            A[a, b] = A[b, a] = 1
    return A


def lines(values: np.ndarray) -> bytes:
    """A table without header, as the packed text of `pandas.to_csv(compression="gzip")`."""
    rows = np.atleast_2d(np.asarray(values).T).T.tolist()
    return gzip.compress("".join(",".join(map(repr, row)) + "\n" for row in rows).encode())


def ogb_files(data: dict[str, np.ndarray], kind: str = "time") -> dict[str, bytes]:
    """The files of an OGB node graph by their paths."""
    names = "".join(f"{k},class {k}\n" for k in range(4))
    files = {
        "raw/edge.csv.gz": lines(data["edges"]),
        "raw/node-feat.csv.gz": lines(data["x"]),
        "raw/node-label.csv.gz": lines(data["y"]),
        "raw/num-node-list.csv.gz": lines(np.array([N])),
        "raw/num-edge-list.csv.gz": lines(np.array([len(data["edges"])])),
        "raw/node_year.csv.gz": lines(np.full(N, 2017)),
        "mapping/labelidx2arxivcategeory.csv.gz": gzip.compress(f"label idx,arxiv category\n{names}".encode()),
    }
    for part, file in (("train", "train"), ("val", "valid"), ("test", "test")):
        files[f"split/{kind}/{file}.csv.gz"] = lines(data[part])
    return files


def reddit_files(data: dict[str, np.ndarray]) -> dict[str, bytes]:
    """The two files of Reddit by their names."""
    kinds = np.zeros(N, dtype=np.int64)
    for number, part in enumerate(("train", "val", "test"), 1):
        kinds[data[part]] = number
    features, graph = io.BytesIO(), io.BytesIO()
    np.savez(features, feature=data["x"].astype(np.float64), label=data["y"], node_types=kinds)
    sources, targets = data["edges"].T
    sp.save_npz(graph, sp.coo_matrix((np.ones(len(sources)), (sources, targets)), shape=(N, N)))
    return {"reddit_data.npz": features.getvalue(), "reddit_graph.npz": graph.getvalue()}


def shchur_file(data: dict[str, np.ndarray], **changes: object) -> bytes:
    """An npz in the layout of Shchur et al., with names as pickled objects, as some of theirs have."""
    A = sp.coo_matrix((np.ones(len(data["edges"])), tuple(data["edges"].T)), shape=(N, N)).tocsr()
    X = sp.csr_matrix(np.round(np.abs(data["x"]) * 2))
    arrays: dict = {"labels": data["y"], "node_names": np.array([f"n{i}" for i in range(N)], dtype=object)}
    for name, matrix in (("adj", A), ("attr", X)):
        arrays |= {f"{name}_{piece}": getattr(matrix, piece) for piece in ("data", "indices", "indptr")}
        arrays[f"{name}_shape"] = np.array(matrix.shape)
    stream = io.BytesIO()
    np.savez(stream, **{key: value for key, value in {**arrays, **changes}.items() if value is not None})
    return stream.getvalue()


def write_files(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def zipped(files: dict[str, bytes], root: str = "") -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(root + name, content)
    return stream.getvalue()


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Web:
    """Files on a server of this machine.

    `break_after`: the bytes after which each answer breaks off; `ranges`: whether it can send the rest of a file.
    """

    def __init__(self):
        self.files: dict[str, bytes] = {}
        self.requests: list[tuple[str, str | None]] = []  # path, Range
        self.break_after: int | None = None
        self.ranges = True
        web = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                web.answer(self)

            def log_message(self, *arguments):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        # A server looks whether to stop every half second, unless told otherwise.
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        asked = request.headers.get("Range")
        self.requests.append((request.path[1:], asked))
        content = self.files.get(request.path[1:])
        if content is None:
            request.send_error(404)
            return
        tag = f'"{sha256(content)[:16]}"'
        start = 0
        if asked and self.ranges and request.headers.get("If-Range", tag) == tag:
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
            if start >= len(content):
                request.send_response(416)
                request.send_header("Content-Range", f"bytes */{len(content)}")
                request.end_headers()
                return
        request.send_response(206 if start else 200)
        if start:
            request.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        request.send_header("ETag", tag)
        request.send_header("Content-Length", str(len(content) - start))
        request.end_headers()
        end = len(content) if self.break_after is None else start + self.break_after
        request.wfile.write(content[start:end])

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
