"""What can be said on the command line: one annotated type per option.

An option that is not given is None, which means the estimator's own default: the defaults in the help texts are
only shown, and a test compares them with those of `FisherEmbedding`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from fishergraph.cli.config import load_config

# option: parameter of FisherEmbedding
SETTINGS = {
    "layers": "n_layers",
    "anchors": "n_anchors",
    "dim": "dim",
    "em_iter": "n_em_iter",
    "variance": "variance",
    "sharpness": "sharpness",
    "prior": "prior",
    "counts": "counts",
    "normalize": "normalize",
    "anchor_method": "anchor_method",
    "multiset": "multiset",
    "weights": "weights",
    "undirected": "undirected",
    "structure": "structure",
    "kernel": "kernel",
    "bandwidth": "bandwidth",
    "attention": "attention",
}


def _one_of(module: str, table: str) -> Callable[[str | None], str | None]:
    """A callback that admits the names of a table of the library, which is imported only when there is one to check."""

    def check(name: str | None) -> str | None:
        known = () if name is None else tuple(getattr(import_module(module), table))
        if name is not None and name not in known:
            raise typer.BadParameter(f"{name!r} is not one of {', '.join(known)}.")
        return name

    return check


def _structure(name: str | None) -> str | None:
    if name is not None:
        from fishergraph.structural import describe_structure

        try:
            describe_structure(name)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None
    return name


def _variance(text: Any) -> float | str | None:
    """The variance: "auto" or a positive number."""
    if text is None or text == "auto":
        return text
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise typer.BadParameter(f"{text!r} is neither 'auto' nor a number greater than 0.")
    return value


def _positive(value: float | None) -> float | None:
    if value is not None and not 0 < value < float("inf"):
        raise typer.BadParameter(f"{value} is not a finite number greater than 0.")
    return value


_DATA, _METHOD, _RUN = "Data", "Method", "Run"


def _option(*names: str, panel: str, help: str, default: str = "", **more: Any) -> Any:
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
    _option(
        "--nodes",
        "-n",
        metavar="FILE",
        panel=_DATA,
        help="Node file: an id column and numeric features, a row per node.",
    ),
]
Output = Annotated[
    Path,
    _option(
        "--output", "-o", metavar="FILE", panel=_DATA, help="Embedding to write: .parquet, .csv, .tsv (or .gz) or .npz."
    ),
]
IdColumn = Annotated[
    str | None,
    _option("--id-column", metavar="NAME", panel=_DATA, help="Column of the node ids.", default="id, node or node_id"),
]
Drop = Annotated[
    list[str] | None,
    _option("--drop", metavar="NAME", panel=_DATA, help="Column that is no feature, such as a label; repeatable."),
]
Undirected = Annotated[
    bool | None,
    _option("--undirected/--directed", panel=_DATA, help="Add the reverse of every edge, or keep edges as given."),
]
Structure = Annotated[
    str | None,
    _option(
        "--structure",
        metavar="NAME",
        panel=_DATA,
        callback=_structure,
        default="projection",
        help="Features for nodes without any: projection, degree or spectral.",
    ),
]
Layers = Annotated[
    int | None,
    _option("--layers", metavar="N", panel=_METHOD, min=0, default="5", help="Layers; 0 is the input map alone."),
]
Anchors = Annotated[
    int | None,
    _option("--anchors", metavar="N", panel=_METHOD, min=1, default="4", help="Mixture components of a layer."),
]
Dim = Annotated[
    int | None, _option("--dim", metavar="N", panel=_METHOD, min=1, default="256", help="Columns per layer.")
]
EmIter = Annotated[
    int | None, _option("--em-iter", metavar="N", panel=_METHOD, min=0, default="1", help="EM iterations per layer.")
]
Variance = Annotated[
    str | None,
    _option(
        "--variance",
        metavar="X",
        panel=_METHOD,
        callback=_variance,
        default="auto",
        help="Component variance: number or auto.",
    ),
]
Sharpness = Annotated[
    float | None,
    _option(
        "--sharpness",
        metavar="X",
        panel=_METHOD,
        max=1,
        callback=_positive,
        default="0.9",
        help="What auto aims at: near 0 hard assignment, 1 mean pooling.",
    ),
]
Prior = Annotated[
    float | None,
    _option(
        "--prior", metavar="X", panel=_METHOD, min=0, default="0.0", help="Weight of an anchor in its own component."
    ),
]
Counts = Annotated[
    bool | None,
    _option("--counts/--no-counts", panel=_METHOD, default="no-counts", help="Append the soft counts."),
]
Normalize = Annotated[
    bool | None,
    _option("--normalize/--no-normalize", panel=_METHOD, default="normalize", help="Divide points by their lengths."),
]
AnchorMethod = Annotated[
    str | None,
    _option(
        "--anchor-method",
        metavar="NAME",
        panel=_METHOD,
        callback=_one_of("fishergraph.em.anchors", "METHODS"),
        default="kmeans",
        help="kmeans, spherical, em or random.",
    ),
]
Multiset = Annotated[
    str | None,
    _option(
        "--multiset",
        metavar="NAME",
        panel=_METHOD,
        callback=_one_of("fishergraph.multiset", "MULTISETS"),
        default="neighbourhood",
        help="neighbourhood (with the node itself), open-neighbourhood, or by diffusion: ppr, heat or s2gc.",
    ),
]
Weights = Annotated[
    str | None,
    _option(
        "--weights",
        metavar="NAME",
        panel=_METHOD,
        callback=_one_of("fishergraph.multiset", "WEIGHTS"),
        default="edge",
        help="edge (as given), uniform, or symmetric (by the roots of both degrees).",
    ),
]
Kernel = Annotated[
    str | None,
    _option(
        "--kernel",
        metavar="NAME",
        panel=_METHOD,
        callback=_one_of("fishergraph.kernel_map", "KERNELS"),
        default="exp",
        help="exp or identity.",
    ),
]
Bandwidth = Annotated[
    float | None,
    _option(
        "--bandwidth",
        metavar="X",
        panel=_METHOD,
        callback=_positive,
        default="1.5",
        help="Width of the exponential kernel.",
    ),
]
Attention = Annotated[
    str | None,
    _option(
        "--attention",
        metavar="NAME",
        panel=_METHOD,
        callback=_one_of("fishergraph.layer", "ATTENTIONS"),
        default="posterior",
        help="posterior (the paper's equations) or reference (the authors' code).",
    ),
]
Seed = Annotated[
    int | None,
    _option("--seed", metavar="N", panel=_RUN, min=0, max=2**32 - 1, default="drawn and recorded", help="Random seed."),
]
Jobs = Annotated[
    int | None,
    _option(
        "--jobs",
        "-j",
        metavar="N",
        panel=_RUN,
        min=1,
        default="all cores",
        help="Threads; any number gives the same result.",
    ),
]
Save = Annotated[
    Path | None, _option("--save", metavar="FILE", panel=_RUN, help="Write the fitted model (safetensors) here.")
]
Model = Annotated[
    Path | None,
    _option("--model", metavar="FILE", panel=_RUN, help="Use this saved model as it is; nothing is learned."),
]
Config = Annotated[
    Path | None,
    _option(
        "--config",
        metavar="FILE",
        panel=_RUN,
        callback=load_config,
        is_eager=True,
        help="TOML file whose keys are the long options; the command line wins.",
    ),
]
Quiet = Annotated[bool, _option("--quiet", "-q", panel=_RUN, help="No bar, hint or summary.")]
Debug = Annotated[bool, _option("--debug", panel=_RUN, help="Show the traceback of a failure.")]
