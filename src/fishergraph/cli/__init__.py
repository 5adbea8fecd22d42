"""The command `fishergraph`, of which `fishergraph --help` lists the commands.

    commands   all of them, under one name; `lab` is that of fishergraph.lab, imported when it is used
    options    options generated from the docstrings of estimators and components, and messages that name options
    components values and components from the texts of options
    config     options from a TOML file
    jobs       what a command was asked for, and the files it reads
    labels     the labels it reads, the predictions it writes
    embed      fishergraph embed: files in, embedding and run record out
    train      fishergraph train: files with labels in, trained classifier and run record out
    predict    fishergraph predict: files and a trained classifier in, classes out
    explain    fishergraph explain: files and a fitted embedding in, the reasons of a similarity out
    anomalies  fishergraph anomalies: the same files in, how odd every node is out
    explore    fishergraph explore: an embedding in, a page to click through out
    nearest    fishergraph nearest: an embedding and ids in, the nearest nodes out
    links      fishergraph links: files in, how well edges are predicted and the most probable new ones out
    cluster    fishergraph cluster: an embedding in, groups of nodes with names out
    table      fishergraph table: files in, a table of named columns out
    answers    what these three share: options, tables on the terminal and in files
    plot       fishergraph plot: an embedding or the log of a training in, a picture out
    ingest     fishergraph ingest: files of any size in, a store out
    plan       fishergraph plan: what an embedding takes, before it is done
    update     fishergraph update: a store whose graph changes, and its embeddings
    verify     fishergraph verify: whether a store is whole, or two of them hold the same
    demo       fishergraph demo: the bundled Cora, scored and drawn
    data       fishergraph data list | info | fetch | convert: graphs to learn on; data_pages, how they are shown
    record     a run, its seconds and its record
    console    bars, warnings, and the message and exit code of a failure

Only typer is imported before a command runs, so that `--help` is quick.
Exit codes: 0; 1, a failure that the message explains; 2, a wrong call; 130, interrupted.
"""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fishergraph.cli.commands import app

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line; leaves with one of the exit codes above."""
    _use_utf8()
    try:
        from fishergraph.cli.commands import run
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    run()


def _use_utf8() -> None:
    """Restart Python in UTF-8 mode if file names are read in another encoding, as in the C locale.

    Libraries open files by names in UTF-8. Characters that stdout or stderr cannot show are replaced.
    """
    if not sys.flags.utf8_mode and sys.getfilesystemencoding().lower() != "utf-8":
        os.execv(sys.executable, [sys.orig_argv[0], "-X", "utf8", *sys.orig_argv[1:]])
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace" if stream is sys.stdout else "backslashreplace")
    unreadable = [argument for argument in sys.argv if any("\udc80" <= letter <= "\udcff" for letter in argument)]
    if unreadable:
        print(f"error: a path must be text in UTF-8, got {unreadable[0]!r}; rename it.", file=sys.stderr)
        raise SystemExit(2)


def __getattr__(name: str) -> Any:
    if name == "app":
        from fishergraph.cli.commands import app

        return app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
