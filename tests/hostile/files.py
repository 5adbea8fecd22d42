"""Hostile files: one command of the command line on good files of which one is spoilt, in a folder of its own.

The call may end well or with a sentence (exit codes 1 and 2). It must not show an inner error, write NaN, change what
it reads, or leave a file behind that is not its output.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import json
import os
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from typer.testing import CliRunner

from fishergraph.cli import app
from hostile import file_damage as damage
from hostile import file_kinds as kinds
from hostile.rule import Fault, not_finite

Rng = np.random.Generator
Case = tuple[str, kinds.Files, list[str]]  # what is wrong, the files, the arguments
FOLDER = Path.cwd()
QUICK = ["--n-layers", "1", "--n-anchors", "2", "--dim", "4", "--seed", "0", "--jobs", "1", "--quiet", "--debug"]
LONGEST = 5000  # characters of a message
OUTPUTS = (".csv", ".tsv.gz", ".parquet", ".npz")
# Import and compile what the cases need before they are timed.
kinds.embedding_model()
kinds.classifier_model()
# Nothing is looked for, or downloaded to, outside the folder of a case.
os.environ["FISHERGRAPH_DATA"] = os.environ["XDG_CACHE_HOME"] = str(FOLDER / "no-data")


def make(seed: int) -> tuple[str, Callable[[], Any]]:
    """(what is wrong, the call) of a seed."""
    rng = np.random.default_rng(seed)
    names, shares = zip(*FAMILIES.items(), strict=True)
    name = names[int(np.searchsorted(np.cumsum([share for share, _ in shares]), rng.random() * 100, side="right"))]
    label, files, arguments = FAMILIES[name][1](rng)
    return f"{name}: {label}: {' '.join(arguments[:1])}", partial(run, seed, files, arguments)


# --- cases ----------------------------------------------------------------------------------------------


def spoilt(rng: Rng, content: Any) -> tuple[str, Any]:
    """(what is wrong, other bytes, or a function that makes something else at the path)."""
    if rng.random() < 0.12:
        name = list(damage.PATHS)[int(rng.integers(len(damage.PATHS)))]
        return name, damage.PATHS[name]
    name = list(damage.BYTES)[int(rng.integers(len(damage.BYTES)))]
    return name, damage.BYTES[name](rng, content)


def some_ids(rng: Rng) -> list[Any]:
    """The ids of the nodes: numbers, names, or odd ones."""
    kind = int(rng.integers(3))
    odd = [damage.IDS[k] for k in rng.permutation(len(damage.IDS))[: kinds.N]]
    return [list(range(kinds.N)), [f"n{k}" for k in range(kinds.N)], odd][kind]


def table_file(rng: Rng, table: Any, suffix: str) -> tuple[str, Any]:
    """A table as a file: good, with odd columns or cells, or spoilt."""
    kind = rng.random()
    if kind < 0.12:
        return "good", kinds.write_table(table, suffix)
    if kind < 0.6 and suffix == ".parquet":
        label, table = damage.odd_column(rng, table)
        return label, kinds.write_table(table, suffix)
    if kind < 0.6:
        rows = [table.column_names, *([str(cell) for cell in row.values()] for row in table.to_pylist())]
        label, rows = damage.odd_rows(rng, rows)
        return label, kinds.write_text(rows, suffix)
    return spoilt(rng, kinds.write_table(table, suffix))


def npz_file(rng: Rng, arrays: dict[str, Any]) -> tuple[str, Any]:
    """Arrays as a file: good, with an odd one, or spoilt."""
    kind = rng.random()
    if kind < 0.08:
        return "good", kinds.write_npz(arrays)
    return damage.odd_npz(rng, arrays) if kind < 0.75 else spoilt(rng, kinds.write_npz(arrays))


def table_case(rng: Rng, which: str, command: list[str]) -> Case:
    """A command on an edge table and a node table, of which one is odd."""
    ids, suffix, other = some_ids(rng), str(rng.choice(kinds.TABLES)), str(rng.choice(kinds.TABLES))
    tables = {"edges": kinds.edge_table(rng, ids), "nodes": kinds.node_table(rng, ids)}
    label, content = table_file(rng, tables[which], suffix)
    rest = "nodes" if which == "edges" else "edges"
    files = {f"{which}{suffix}": content, f"{rest}{other}": kinds.write_table(tables[rest], other)}
    edges, nodes = (next(name for name in files if name.startswith(kind)) for kind in ("edges", "nodes"))
    return f"{suffix} of {which}: {label}", files, [command[0], edges, "-n", nodes, *command[1:]]


def embed_table(rng: Rng, which: str) -> Case:
    return table_case(rng, which, ["embed", "--drop", "y", "-o", f"z{rng.choice(OUTPUTS)}", *QUICK])


def embed_text(rng: Rng) -> Case:
    """A text file of edges without header: good, or spoilt."""
    suffix, content = kinds.edge_text(rng)
    label, content = ("good", content) if rng.random() < 0.2 else spoilt(rng, content)
    odd = {
        "--separator": ["tab", "space", ";", "xx", ""],
        "--encoding": ["utf-16", "latin-1", "base64", "none", "idna"],
        "--weight": ["3", "none", "x", "9"],
        "--time": ["3"],
    }
    more = [word for flag, values in odd.items() if rng.random() < 0.15 for word in (flag, str(rng.choice(values)))]
    more += [str(rng.choice(["--header", "--no-header"]))] if rng.random() < 0.15 else []
    return f"{suffix}: {label}", {f"e{suffix}": content}, ["embed", f"e{suffix}", "-o", "z.csv", *more, *QUICK]


def embed_graph(rng: Rng) -> Case:
    """A file of a graph with its nodes: good, spoilt, or made to be read for ever."""
    kind, packing = str(rng.choice([".graphml", ".gml", ".json", ".mtx"])), rng.random() < 0.2
    content: Any = kinds.graph_text(rng, kind)
    share = rng.random()
    if share < 0.12:
        label = "good"
    elif share < 0.5:
        label = str(rng.choice(list(damage.TEXTS)))
        content = damage.TEXTS[label]
    else:
        label, content = spoilt(rng, content)
    if packing and isinstance(content, bytes):
        content, kind = gzip.compress(content), kind + ".gz"
    return f"{kind}: {label}", {f"g{kind}": content}, ["embed", f"g{kind}", "-o", "z.csv", *QUICK]


def embed_npz(rng: Rng) -> Case:
    arrays = kinds.npz_arrays(rng) if rng.random() < 0.5 else kinds.sparse_arrays(rng)
    label, content = npz_file(rng, arrays)
    return label, {"g.npz": content}, ["embed", "g.npz", "-o", f"z{rng.choice(OUTPUTS)}", *QUICK]


def train(rng: Rng) -> Case:
    options = ["--label", "y", "-o", "z", "--max-epochs", "1", *QUICK]
    if rng.random() < 0.5:
        return table_case(rng, "nodes", ["train", *options])
    label, content = npz_file(rng, kinds.npz_arrays(rng))
    return label, {"g.npz": content}, ["train", "g.npz", *options]


def with_model(rng: Rng) -> Case:
    """A saved model that is another file, or a good one beside an odd table."""
    trained = rng.random() < 0.4
    command = ["predict" if trained else "embed", "--model", "m", "-o", f"z{rng.choice(OUTPUTS)}", "--quiet", "--debug"]
    content: Any = kinds.classifier_model() if trained else kinds.embedding_model()
    command += [] if trained else ["--drop", "y"]
    if rng.random() < 0.5:
        label, files, arguments = table_case(rng, "nodes", command)
        return label, {**files, "m": content}, arguments
    ids = some_ids(rng)
    files = {"e.parquet": kinds.write_table(kinds.edge_table(rng, ids), ".parquet")}
    files["n.parquet"] = kinds.write_table(kinds.node_table(rng, ids), ".parquet")
    # Flipped bits of a model are a suite of their own.
    name = str(rng.choice(["cut", "empty", "zeros", "noise", "HTML", "a zip file", "a pickle", "deep brackets"]))
    label, files["m"] = spoilt(rng, content) if rng.random() < 0.1 else (name, damage.BYTES[name](rng, content))
    return f"model: {label}", files, [command[0], "e.parquet", "-n", "n.parquet", *command[1:]]


CONFIGS: dict[str, bytes] = {
    "deep lists": b"n_layers = " + b"[" * 5000 + b"]" * 5000,
    "deep keys": b".".join([b"a"] * 5000) + b" = 1",
    "deep tables": b"n_layers = " + b"{a = " * 3000 + b"1" + b"}" * 3000,
    "a list": b"n_layers = [1, 2, 3]",
    "lists in a list": b"n_layers = [[1], [2]]",
    "a table": b"[n_layers]\na = 1",
    "a large number": b"n_layers = 99999999999999999999999999",
    "many digits": b"seed = " + b"9" * 5000,
    "many hexadecimal digits": b"seed = 0x" + b"f" * 5000,
    "NaN": b'family = "variance=nan"',
    "infinity": b"dim = inf",
    "a date": b"dim = 2024-01-01",
    "a flag": b"dim = true",
    "NUL in a path": b'save = "a\\u0000b"',
    "NUL in a name": b'nodes = "a\\u0000b"',
    "a folder to write to": b'save = "."',
    "a long path": b'save = "' + b"a" * 5000 + b'"',
    "an unknown key": b"colour = 3",
    "a key twice": b"dim = 4\ndim = 5",
    "two spellings": b"n-layers = 1\nn_layers = 2",
    "config in config": b'config = "c.toml"',
    "JSON": b'{"n_layers": 1}',
    "a negative number": b"n_layers = -1",
    "long text": b'multiset = "' + b"x" * 100_000 + b'"',
    "a broken component": b'multiset = "ppr("',
    "deep brackets": b'multiset = "ppr(' + b"(" * 900 + b'"',
    "code in a component": b'em = "n_iter=__import__(1)"',
    "an unknown option": b'kernel = "exp(colour=3)"',
    "many digits in a component": b'em = "n_iter=' + b"9" * 900 + b'"',
    "large": b"# " + b"x" * 2_000_000,
    "good": b"n_layers = 1\nundirected = true\n",
}


def config(rng: Rng) -> Case:
    """A TOML file with odd content, or spoilt."""
    ids = [f"n{k}" for k in range(kinds.N)]
    files: kinds.Files = {"e.csv": kinds.write_table(kinds.edge_table(rng, ids), ".csv")}
    label = list(CONFIGS)[int(rng.integers(len(CONFIGS)))]
    if rng.random() < 0.65:
        files["c.toml"] = CONFIGS[label]
    else:
        label, files["c.toml"] = spoilt(rng, CONFIGS["good"])
    arguments = ["--config", "c.toml", "-o", "z.csv", "--n-anchors", "2", "--quiet", "--debug"]
    arguments += [] if label in ("infinity", "a date", "a flag") else ["--dim", "4"]
    arguments += [] if "digits" in label else ["--seed", "0"]
    return label, files, ["embed", "e.csv", *arguments]


def data(rng: Rng) -> Case:
    """A dataset of any layout with one spoilt file."""
    kind = str(rng.choice(kinds.SOURCES))
    path, files = kinds.source(kind, rng)
    name = list(files)[int(rng.integers(len(files)))]
    if kind in ("npz", "sparse npz", "set npz") and rng.random() < 0.6:
        arrays = {"npz": kinds.npz_arrays, "sparse npz": kinds.sparse_arrays, "set npz": kinds.set_arrays}[kind](rng)
        label, files[name] = damage.odd_npz(rng, arrays)
    elif name.endswith((".txt", ".csv", ".csv.gz")) and rng.random() < 0.5:
        label, files[name] = _odd_text(rng, name, files[name])
    elif rng.random() < 0.93:
        label, files[name] = spoilt(rng, files[name])
    else:
        label = "good"
    return f"{kind}: {name}: {label}", files, _data_command(rng, path)


def _odd_text(rng: Rng, name: str, content: bytes) -> tuple[str, bytes]:
    packed = name.endswith(".gz")
    text = (gzip.decompress(content) if packed else content).decode()
    label, rows = damage.odd_rows(rng, [line.split(",") for line in text.split("\n") if line])
    text = "".join(",".join(row) + "\n" for row in rows).encode()
    return label, gzip.compress(text) if packed else text


def _data_command(rng: Rng, path: str) -> list[str]:
    if rng.random() < 0.4:
        return ["data", "info", path, "--debug"]
    target = f"out{rng.choice(('.npz', '.csv', '.parquet', '.tsv.gz'))}"
    return ["data", "convert", path, target, "--debug", *(["--prepared"] if rng.random() < 0.2 else [])]


def pt(rng: Rng) -> Case:
    """A processed file of PyTorch Geometric: spoilt, or of other content."""
    fields = kinds.pt_content(rng)
    key = str(rng.choice(list(fields)))
    other, odd = damage.pt_contents(fields), damage.pt_tensors(fields)
    kind, old = rng.random(), bool(rng.random() < 0.3)
    if kind < 0.25:
        label = str(rng.choice(list(other)))
        content = kinds.write_pt(other[label], old=old)
    elif kind < 0.6:
        label = str(rng.choice(list(odd)))
        content = kinds.write_pt((fields | {key: odd[label]}, {}), old=old)
        label = f"{key}: {label}"
    else:
        label, content = spoilt(rng, kinds.write_pt((fields, {}), old=old))
    return label, {"data.pt": content}, _data_command(rng, "data.pt")


FAMILIES: dict[str, tuple[float, Callable[[Rng], Case]]] = {
    "edges": (17, partial(embed_table, which="edges")),
    "nodes": (17, partial(embed_table, which="nodes")),
    "text": (8, embed_text),
    "graph": (8, embed_graph),
    "npz": (12, embed_npz),
    "config": (9, config),
    "data": (18, data),
    "pt": (4, pt),
    "train": (4, train),
    "model": (3, with_model),
}


# --- running --------------------------------------------------------------------------------------------


def run(seed: int, files: kinds.Files, arguments: list[str]) -> Any:
    """Run a command in a folder with these files; raises its error, or a Fault."""
    folder = FOLDER / f"case-{seed}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content) if isinstance(content, bytes) else content(path)
    before = _contents(folder)
    os.chdir(folder)
    try:
        with _caught() as errors:
            result = CliRunner().invoke(app, arguments)
        _judge(folder, before, result, errors)
        if errors:
            raise errors[-1]
    finally:
        os.chdir(FOLDER)
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _caught() -> Iterator[list[BaseException]]:
    """The errors that `--debug` would show."""
    errors: list[BaseException] = []
    shown = traceback.print_exc

    def keep(*arguments: Any, **options: Any) -> None:
        error = sys.exception()
        assert error is not None
        # A file that the system does not open is named in its message.
        if not (isinstance(error, OSError) and error.filename):
            errors.append(error)

    traceback.print_exc = keep
    try:
        yield errors
    finally:
        traceback.print_exc = shown


def _judge(folder: Path, before: dict[str, Any], result: Any, errors: list[Any]) -> None:
    """Raise a Fault where the call broke the rule."""
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise Fault("an exception: " + "".join(traceback.format_exception(result.exception)))
    if result.exit_code not in (0, 1, 2):
        raise Fault(f"exit code {result.exit_code}: {result.output}")
    if "error: unexpected" in result.stderr or "Traceback" in result.stderr:
        inner = "".join(traceback.format_exception(errors[-1])) if errors else ""
        raise Fault(f"{result.stderr}\n{inner}")
    if any(advice in result.output for advice in ("weights_only", "allow_pickle", "pickle.load")):
        raise Fault(f"advice to run a file: {result.stderr}")
    if len(result.stderr) > LONGEST:
        raise Fault(f"a message of {len(result.stderr)} characters: {result.stderr[:500]}")
    after = _contents(folder)
    changed = [name for name in before if after.get(name) != before[name]]
    if changed:
        raise Fault(f"changed {changed}")
    new = sorted(set(after) - set(before))
    if result.exit_code and new:
        raise Fault(f"left {new} behind after: {result.stderr}")
    strange = [name for name in new if not name.startswith(("z", "out"))]
    if strange:
        raise Fault(f"wrote {strange}")
    for name in new:
        _check_written(folder / name)


def _contents(folder: Path) -> dict[str, Any]:
    """What is at every path: the bytes of files, the kind of anything else."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            found[name] = os.readlink(path)
        elif path.is_file():
            found[name] = path.read_bytes()
        elif not path.is_dir():
            found[name] = "special"
    return found


def _check_written(path: Path) -> None:
    """Raise a Fault for a file that holds NaN, or that cannot be read."""
    name = path.name
    if name.endswith(".json"):
        json.loads(path.read_text(), parse_constant=_no_constant)
    elif name.endswith(".npz"):
        with np.load(path) as arrays:
            bad = next(filter(None, (not_finite(arrays[key], key) for key in arrays.files)), "")
    elif name.endswith(".parquet"):
        table = pq.read_table(path)
        columns = ((column, table.column(column)) for column in table.column_names)
        bad = next((c for c, v in columns if str(v.type) in ("float", "double") and not_finite(v.to_numpy())), "")
    elif name.endswith((".csv", ".tsv.gz")):
        with gzip.open(path, "rt") if name.endswith(".gz") else path.open() as file:
            rows = list(csv.reader(file, delimiter="\t" if "tsv" in name else ","))
        numbers = [k for k, column in enumerate(rows[0]) if column.startswith("z")]
        bad = next((c for row in rows[1:] for c in (row[k] for k in numbers) if not np.isfinite(float(c))), "")
    else:
        return
    if not name.endswith(".json") and bad:
        raise Fault(f"{name} holds a number that is not finite: {bad}")


def _no_constant(word: str) -> Any:
    raise Fault(f"a record holds {word}")
