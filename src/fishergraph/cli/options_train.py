"""What can be said on the command line about training and predicting."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fishergraph.cli.choices import one_of
from fishergraph.cli.options import option
from fishergraph.cli.options_method import positive

_DATA, _METHOD, _TRAINING, _RUN = "Data", "Method", "Training", "Run"


def _fan_out(text: Any) -> Any:
    """A number of neighbours, or one per layer with commas between them."""
    if text is None or not isinstance(text, str):
        return text
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"{text!r} is neither a number nor numbers such as 10,5.") from None
    return numbers[0] if len(numbers) == 1 else numbers


# The names that training takes; a test compares them with the library's, which needs torch.
HEADS, JKS, INITS = ("nystrom", "relu", "linear"), ("cat", "last"), ("data", "random")
SCHEDULES, AMPS = ("cosine", "plateau"), ("bf16", "fp16")
LOGS, PLOTS = (".csv", ".jsonl"), (".png", ".svg", ".pdf")


ModelOutput = Annotated[
    Path, option("--output", "-o", metavar="FILE", panel=_DATA, help="The trained model to write (safetensors).")
]
Predictions = Annotated[
    Path,
    option(
        "--output",
        "-o",
        metavar="FILE",
        panel=_DATA,
        help="Predictions to write: .csv, .tsv (or .gz), .parquet or .npz.",
    ),
]
Label = Annotated[
    str,
    option(
        "--label",
        metavar="NAME",
        panel=_DATA,
        help="Column of the classes, which are kept as they are written; nodes whose cell is empty, NA, NaN or null "
        "have no label, nor have those of -1 in an .npz.",
    ),
]
Split = Annotated[
    str | None,
    option(
        "--split",
        metavar="NAME",
        panel=_DATA,
        help="Column that says train, val or test; empty cells are neither.",
        default="the train_mask, val_mask and test_mask of an .npz that has them",
    ),
]
ValFraction = Annotated[
    float | None,
    option(
        "--val-fraction",
        metavar="X",
        panel=_DATA,
        min=0,
        max=0.9,
        default="0.1",
        help="Without --split: the share of the labels of each class that is held out to decide when to stop.",
    ),
]
Layers = Annotated[
    int | None,
    option("--layers", metavar="N", panel=_METHOD, min=0, default="2", help="Layers; 0 is the input map alone."),
]
Dim = Annotated[int | None, option("--dim", metavar="N", panel=_METHOD, min=1, default="64", help="Width of a layer.")]
Head = Annotated[
    str | None,
    option(
        "--head",
        metavar="NAME",
        panel=_METHOD,
        callback=one_of(*HEADS),
        default="nystrom",
        help="A layer's map: nystrom, relu or linear.",
    ),
]
Jk = Annotated[
    str | None,
    option(
        "--jk",
        metavar="NAME",
        panel=_METHOD,
        callback=one_of(*JKS),
        default="cat",
        help="The classifier sees all layers (cat) or last.",
    ),
]
Heads = Annotated[
    int | None, option("--heads", metavar="N", panel=_METHOD, min=1, default="1", help="Mixtures side by side.")
]
Init = Annotated[
    str | None,
    option(
        "--init",
        metavar="NAME",
        panel=_METHOD,
        callback=one_of(*INITS),
        default="data",
        help="Anchors by k-means (data), or random.",
    ),
]
Dropout = Annotated[
    float | None,
    option("--dropout", metavar="X", panel=_TRAINING, min=0, max=1, default="0.5", help="Share of entries left out."),
]
InputDropout = Annotated[
    float | None,
    option("--input-dropout", metavar="X", panel=_TRAINING, min=0, max=1, default="0.0", help="The same of features."),
]
Epochs = Annotated[
    int | None, option("--epochs", metavar="N", panel=_TRAINING, min=1, default="500", help="The most epochs.")
]
Lr = Annotated[
    float | None,
    option("--lr", metavar="X", panel=_TRAINING, callback=positive, default="0.001", help="Learning rate of Adam."),
]
WeightDecay = Annotated[
    float | None,
    option("--weight-decay", metavar="X", panel=_TRAINING, min=0, default="0.0005", help="Penalty on the weights."),
]
Patience = Annotated[
    int | None,
    option("--patience", metavar="N", panel=_TRAINING, min=1, default="100", help="Epochs to wait for a better one."),
]
Schedule = Annotated[
    str | None,
    option(
        "--schedule",
        metavar="NAME",
        panel=_TRAINING,
        callback=one_of(*SCHEDULES),
        help="Of the learning rate: cosine or plateau.",
    ),
]
BatchSize = Annotated[
    int | None,
    option("--batch-size", metavar="N", panel=_TRAINING, min=1, help="Nodes in a step, with sampled neighbours."),
]
FanOut = Annotated[
    str | None,
    option(
        "--fan-out",
        metavar="N[,N…]",
        panel=_TRAINING,
        callback=_fan_out,
        help="Neighbours sampled at each distance, -1 for all; 10 where a batch size is given.",
    ),
]
Amp = Annotated[
    str | None,
    option("--amp", metavar="NAME", panel=_TRAINING, callback=one_of(*AMPS), help="Products in bf16, or in fp16."),
]
Checkpoint = Annotated[
    Path | None,
    option("--checkpoint", metavar="FILE", panel=_RUN, help="Keep the state of the training here; needs --seed."),
]
Resume = Annotated[
    bool, option("--resume", panel=_RUN, help="Go on from the checkpoint, if there is one, as if nothing had happened.")
]
Log = Annotated[
    Path | None, option("--log", metavar="FILE", panel=_RUN, help="Write a row per epoch here: .csv or .jsonl.")
]
Plot = Annotated[
    Path | None,
    option("--plot", metavar="FILE", panel=_RUN, help="Draw losses and accuracies here: .png, .svg or .pdf."),
]
TrainedModel = Annotated[Path, option("--model", metavar="FILE", panel=_DATA, help="The model that train wrote.")]
Proba = Annotated[bool, option("--proba", panel=_DATA, help="Write the probability of every class too.")]
