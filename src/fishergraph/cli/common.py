"""Options that are not parameters of an estimator: files, the run, and what is printed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fishergraph.cli.config import load_config
from fishergraph.cli.options import option

DATA, RUN = "Data", "Run"


def _file(*names: str, panel: str, help: str) -> object:
    return option(*names, metavar="FILE", panel=panel, help=help)


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
    _file("--nodes", "-n", panel=DATA, help="Node file: an id column and numeric features, a row per node."),
]
Output = Annotated[
    Path, _file("--output", "-o", panel=DATA, help="Embedding to write: .parquet, .csv, .tsv (or .gz) or .npz.")
]
ModelOutput = Annotated[Path, _file("--output", "-o", panel=DATA, help="The trained model to write (safetensors).")]
Predictions = Annotated[
    Path, _file("--output", "-o", panel=DATA, help="Predictions to write: .csv, .tsv (or .gz), .parquet or .npz.")
]
IdColumn = Annotated[
    str | None,
    option(
        "--id-column",
        metavar="NAME",
        panel=DATA,
        help="Column of the node ids.",
        default="id, node or node_id, else an index of pandas, else the row numbers",
    ),
]
Drop = Annotated[
    list[str] | None,
    option("--drop", metavar="NAME", panel=DATA, help="Column that is not a feature, such as a label; repeatable."),
]
Undirected = Annotated[
    bool | None,
    option("--undirected/--directed", panel=DATA, help="Add the reverse of every edge, or keep edges as given."),
]
Label = Annotated[
    str,
    option(
        "--label",
        metavar="NAME",
        panel=DATA,
        help="Column of the classes. A cell that is empty, NA, NaN or null (in an .npz: -1) is a node without a label.",
    ),
]
Split = Annotated[
    str | None,
    option(
        "--split",
        metavar="NAME",
        panel=DATA,
        help="Column that says train, val or test; rows with an empty cell are not used.",
        default="the train_mask, val_mask and test_mask of an .npz that has them",
    ),
]
Proba = Annotated[bool, option("--proba", panel=DATA, help="Write the probability of every class too.")]
TrainedModel = Annotated[Path, _file("--model", panel=DATA, help="The model that train wrote.")]

Preset = Annotated[
    str | None,
    option(
        "--preset",
        metavar="NAME",
        panel="Method",
        help="Start from other settings: fast, heterophily, paper (its equations alone) or published-code (the rule of "
        "the authors' code).",
    ),
]
Seed = Annotated[
    int | None,
    option("--seed", metavar="N", panel=RUN, min=0, max=2**32 - 1, default="drawn and recorded", help="Random seed."),
]
Jobs = Annotated[
    int | None,
    option("--jobs", "-j", metavar="N", panel=RUN, min=1, default="all cores",
           help="Threads; any number gives the same result."),
]  # fmt: skip
Engine = Annotated[
    str | None,
    option("--engine", metavar="NAME", panel=RUN, default="the first that can",
           help="What computes EM: numba, scipy, triton or torch."),
]  # fmt: skip
Save = Annotated[Path | None, _file("--save", panel=RUN, help="Write the fitted model (safetensors) here.")]
Model = Annotated[Path | None, _file("--model", panel=RUN, help="Use this saved model as it is; nothing is learned.")]
Checkpoint = Annotated[
    Path | None, _file("--checkpoint", panel=RUN, help="Keep the state of the training here; needs --seed.")
]
Resume = Annotated[bool, option("--resume", panel=RUN, help="Continue from the checkpoint, if there is one.")]
Log = Annotated[Path | None, _file("--log", panel=RUN, help="Write a row per epoch here: .csv or .jsonl.")]
Plot = Annotated[Path | None, _file("--plot", panel=RUN, help="Draw losses and accuracies here: .png, .svg or .pdf.")]
Config = Annotated[
    Path | None,
    option(
        "--config",
        metavar="FILE",
        panel=RUN,
        callback=load_config,
        is_eager=True,
        help="TOML file whose keys are the long options; the command line wins.",
    ),
]
Quiet = Annotated[bool, option("--quiet", "-q", panel=RUN, help="No bar, hint or summary.")]
Debug = Annotated[bool, option("--debug", panel=RUN, help="Show the traceback of a failure.")]
