"""What a person sees, in any locale, and the sentence of every kind of failure."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from fishergraph.cli.console import explained

EDGES = "source,target\na,b\nb,c\nc,d\n"


def in_c_locale(*arguments, **environment):
    """A command in the C locale, without Python's own ways out of it."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONIOENCODING"}
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    return subprocess.run(
        [sys.executable, "-m", "fishergraph", *map(os.fsencode, arguments)],
        capture_output=True,
        check=False,
        env={**clean, **ascii_only, **environment},
    )


@pytest.mark.parametrize("encoding", [{}, {"PYTHONIOENCODING": "ascii"}])
def test_help_is_shown_in_the_c_locale(encoding):
    done = in_c_locale("lab", "simulate", "--help", **encoding)
    assert done.returncode == 0, done.stderr
    assert b"Run a study of simulated data" in done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="names of files are bytes elsewhere")
def test_paths_that_are_not_ascii_work_in_the_c_locale(tmp_path):
    folder = tmp_path / "é"
    folder.mkdir()
    (folder / "kanten.csv").write_text(EDGES, encoding="utf-8")
    output = folder / "ausgabe…csv.csv"
    done = in_c_locale("embed", folder / "kanten.csv", "--undirected", "--n-layers", "0", "--dim", "4", "-o", output)
    assert done.returncode == 0, done.stderr.decode()
    assert str(output) in done.stdout.decode()
    record = json.loads(output.with_name(output.name + ".run.json").read_text(encoding="utf-8"))
    assert record["output"]["path"] == str(output)


@pytest.mark.skipif(sys.platform == "win32", reason="names of files are bytes elsewhere")
def test_a_path_that_is_no_text_is_refused_before_the_work():
    done = in_c_locale("embed", "edges.csv", "-o", b"\xff.csv")
    assert done.returncode == 2
    assert b"a path must be text in UTF-8, got '\\udcff.csv'; rename it." in done.stderr


# --- sentences --------------------------------------------------------------------------------------------


def sentence(error: Exception, raising="fishergraph.somewhere") -> str:
    """What is said of an error that a raise statement in such a module makes."""
    namespace = {"__name__": raising, "error": error}
    return said(lambda: exec("raise error", namespace))


def said(action) -> str:
    lines: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fishergraph.cli.console.say", lines.append)
        with pytest.raises(SystemExit), explained(debug=False):
            action()
    return lines[0]


def test_a_memory_error_of_the_library_is_said_as_it_is():
    text = "the result needs 9 TB, got 8 GB of memory; use a smaller dim."
    assert sentence(MemoryError(text)) == f"error: {text}"


def test_a_memory_error_from_elsewhere_is_explained():
    assert sentence(MemoryError("9 TB"), raising="numpy").startswith("error: the work must fit into memory, got 9 TB;")


def test_an_error_of_compiled_code_that_the_library_calls_is_not_its_own():
    namespace = {"__name__": "fishergraph.somewhere", "np": np}
    text = said(lambda: exec("np.empty(3).reshape(2, 2)", namespace))
    assert text.startswith("error: unexpected ValueError: cannot reshape")
    assert sentence(ValueError("x must be y, got z; do w.")) == "error: x must be y, got z; do w."


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            PermissionError(errno.EACCES, "Permission denied", "a.csv"),
            "'a.csv' could not be read or written (Permission",
        ),
        (OSError(errno.ENOSPC, "No space left on device", "b.npz"), "'b.npz' could not be read or written (No space"),
        (OSError(errno.ENOSPC, "No space left on device"), "a file could not be read or written (No space"),
        (OSError(errno.EXDEV, "Invalid cross-device link", "a", None, "b"), "'a' and 'b' could not be read or written"),
    ],
)
def test_what_the_system_refuses_is_named(error, text):
    assert sentence(error, raising="os").startswith(f"error: {text}")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_names_the_log_and_the_rows(tmp_path):
    pytest.importorskip("torch")
    from fishergraph.lab.rows import append_rows
    from fishergraph.nn.history import open_log

    path = tmp_path / "rows.jsonl"
    path.symlink_to("/dev/full")
    full = f"error: '{path}' could not be written (No space left on device)"

    def log() -> None:
        with open_log(path, []) as write:
            write({"epoch": 1})

    assert said(log).startswith(full)
    row = {"study": "a", "parameters": {}, "seed": 0, "values": {}}
    assert said(lambda: append_rows(path, [row])).startswith(full)
