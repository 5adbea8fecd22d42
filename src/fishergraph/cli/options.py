"""What can be said on the command line: one annotated type per option.

An option that is not given is None, which means the estimator's own default: the defaults in the help texts are
only shown, and a test compares them with those of `FisherEmbedding` and `FisherClassifier`. Here are the options that
commands share, and what they are called there; `options_method` and `options_train` have the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from fishergraph.cli.choices import device, one_of, structure
from fishergraph.cli.config import load_config

NONE = object()  # None that was asked for: an option that is not given is None too
# option: parameter of both estimators
_SHARED = {
    "layers": "n_layers",
    "anchors": "n_anchors",
    "dim": "dim",
    "em_iter": "n_em_iter",
    "e_step": "e_step",
    "column_penalty": "column_penalty",
    "family": "family",
    "variance": "variance",
    "prior": "prior",
    "normalize": "normalize",
    "multiset": "multiset",
    "weights": "weights",
    "undirected": "undirected",
    "structure": "structure",
}
# of FisherEmbedding
SETTINGS = {
    **_SHARED,
    "sharpness": "sharpness",
    "teleport": "teleport",
    "counts": "counts",
    "anchor_method": "anchor_method",
    "kernel": "kernel",
    "bandwidth": "bandwidth",
    "attention": "attention",
    "fisher": "fisher",
    "tangent": "tangent",
}
# of FisherClassifier
TRAIN_SETTINGS = {
    **_SHARED,
    "head": "head",
    "jk": "jk",
    "dropout": "dropout",
    "input_dropout": "input_dropout",
    "heads": "heads",
    "init": "init",
    "val_fraction": "validation_fraction",
    "epochs": "max_epochs",
    "lr": "lr",
    "weight_decay": "weight_decay",
    "patience": "patience",
    "schedule": "schedule",
    "batch_size": "batch_size",
    "fan_out": "fan_out",
    "amp": "amp",
}


def given(params: Mapping[str, Any], settings: Mapping[str, str]) -> dict[str, Any]:
    """The parameters of an estimator that were given, by their names there; what was given as `NONE` is None."""
    known = {settings[key]: value for key, value in params.items() if key in settings and value is not None}
    return {name: None if value is NONE else value for name, value in known.items()}


PRECISIONS = ("float32", "tf32", "bf16")
_DATA, _RUN = "Data", "Run"


def option(*names: str, panel: str, help: str, default: str = "", **more: Any) -> Any:
    """An option whose default, if it is not shown by typer, stands at the end of its help."""
    text = f"{help} (default: {default})" if default else help
    # A file that cannot be read is a failure of the run, not a wrong call: the library says so.
    return typer.Option(*names, rich_help_panel=panel, help=text, readable=False, **more)


Edges = Annotated[
    Path,
    typer.Argument(
        metavar="EDGES",
        readable=False,
        show_default=False,
        help="Edge file: .csv, .tsv (or .gz of these), .parquet with columns source, target[, weight]; or .npz.",
    ),
]
Nodes = Annotated[
    Path | None,
    option(
        "--nodes",
        "-n",
        metavar="FILE",
        panel=_DATA,
        help="Node file: an id column and numeric features, a row per node.",
    ),
]
Output = Annotated[
    Path,
    option(
        "--output", "-o", metavar="FILE", panel=_DATA, help="Embedding to write: .parquet, .csv, .tsv (or .gz) or .npz."
    ),
]
IdColumn = Annotated[
    str | None,
    option(
        "--id-column",
        metavar="NAME",
        panel=_DATA,
        help="Column of the node ids.",
        default="id, node or node_id, else an index of pandas, else the row numbers",
    ),
]
Drop = Annotated[
    list[str] | None,
    option("--drop", metavar="NAME", panel=_DATA, help="Column that is no feature, such as a label; repeatable."),
]
Undirected = Annotated[
    bool | None,
    option("--undirected/--directed", panel=_DATA, help="Add the reverse of every edge, or keep edges as given."),
]
Structure = Annotated[
    str | None,
    option(
        "--structure",
        metavar="NAME",
        panel=_DATA,
        callback=structure,
        default="projection",
        help="Features for nodes without any: projection, degree or spectral.",
    ),
]
Seed = Annotated[
    int | None,
    option("--seed", metavar="N", panel=_RUN, min=0, max=2**32 - 1, default="drawn and recorded", help="Random seed."),
]
Jobs = Annotated[
    int | None,
    option(
        "--jobs",
        "-j",
        metavar="N",
        panel=_RUN,
        min=1,
        default="all cores",
        help="Threads; any number gives the same result.",
    ),
]
Device = Annotated[
    str | None,
    option(
        "--device",
        metavar="NAME",
        panel=_RUN,
        callback=device,
        default="cpu",
        help="cpu, cuda, or cuda:1 and so on.",
    ),
]
Precision = Annotated[
    str | None,
    option(
        "--precision",
        metavar="NAME",
        panel=_RUN,
        callback=one_of(*PRECISIONS),
        default="float32",
        help="Of products on a card: tf32 or bf16.",
    ),
]
Save = Annotated[
    Path | None, option("--save", metavar="FILE", panel=_RUN, help="Write the fitted model (safetensors) here.")
]
Model = Annotated[
    Path | None,
    option("--model", metavar="FILE", panel=_RUN, help="Use this saved model as it is; nothing is learned."),
]
Config = Annotated[
    Path | None,
    option(
        "--config",
        metavar="FILE",
        panel=_RUN,
        callback=load_config,
        is_eager=True,
        help="TOML file whose keys are the long options; the command line wins.",
    ),
]
Quiet = Annotated[bool, option("--quiet", "-q", panel=_RUN, help="No bar, hint or summary.")]
Debug = Annotated[bool, option("--debug", panel=_RUN, help="Show the traceback of a failure.")]
