"""What can be said on the command line about the method: the layers, their mixtures, and their maps."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from fishergraph.cli.choices import one_in
from fishergraph.cli.options import NONE, option

_METHOD = "Method"


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


def _teleport(text: Any) -> Any:
    """The teleport: a number from 0.01 to 1, or "none"."""
    if text is None or text == "none":
        return text if text is None else NONE
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.01 <= value <= 1:
        raise typer.BadParameter(f"{text!r} is neither 'none' nor a number from 0.01 to 1.")
    return value


def positive(value: float | None) -> float | None:
    """The value, if it is a finite number above zero."""
    if value is not None and not 0 < value < float("inf"):
        raise typer.BadParameter(f"{value} is not a finite number greater than 0.")
    return value


Layers = Annotated[
    int | None,
    option("--layers", metavar="N", panel=_METHOD, min=0, default="2", help="Layers; 0 is the input maps alone."),
]
Anchors = Annotated[
    int | None,
    option("--anchors", metavar="N", panel=_METHOD, min=1, default="4", help="Mixture components of a layer."),
]
Dim = Annotated[
    int | None, option("--dim", metavar="N", panel=_METHOD, min=1, default="256", help="Columns per layer.")
]
EmIter = Annotated[
    int | None, option("--em-iter", metavar="N", panel=_METHOD, min=0, default="1", help="EM iterations per layer.")
]
EStep = Annotated[
    str | None,
    option(
        "--e-step",
        metavar="NAME",
        panel=_METHOD,
        callback=one_in("fishergraph.em.e_step", "E_STEPS"),
        default="posterior",
        help="posterior, balanced (every anchor has its share of every set) or unbalanced (a penalty for it).",
    ),
]
ColumnPenalty = Annotated[
    float | None,
    option("--column-penalty", metavar="X", panel=_METHOD, min=0, default="1.0", help="The weight of that penalty."),
]
Variance = Annotated[
    str | None,
    option(
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
    option(
        "--sharpness",
        metavar="X",
        panel=_METHOD,
        max=1,
        callback=positive,
        default="0.9",
        help="What auto aims at: near 0 hard assignment, 1 mean pooling.",
    ),
]
Prior = Annotated[
    float | None,
    option(
        "--prior", metavar="X", panel=_METHOD, min=0, default="0.0", help="Weight of an anchor in its own component."
    ),
]
Counts = Annotated[
    bool | None,
    option("--counts/--no-counts", panel=_METHOD, default="no-counts", help="Append the soft counts."),
]
Normalize = Annotated[
    bool | None,
    option("--normalize/--no-normalize", panel=_METHOD, default="normalize", help="Divide points by their lengths."),
]
AnchorMethod = Annotated[
    str | None,
    option(
        "--anchor-method",
        metavar="NAME",
        panel=_METHOD,
        callback=one_in("fishergraph.em.anchors", "METHODS"),
        default="kmeans",
        help="kmeans, spherical, em or random.",
    ),
]
Multiset = Annotated[
    str | None,
    option(
        "--multiset",
        metavar="NAME",
        panel=_METHOD,
        callback=one_in("fishergraph.multiset", "MULTISETS"),
        default="neighbourhood",
        help="neighbourhood (with the node itself), open-neighbourhood, hops, pairs, paths, tuples, or by diffusion: "
        "ppr, heat, s2gc.",
    ),
]
Weights = Annotated[
    str | None,
    option(
        "--weights",
        metavar="NAME",
        panel=_METHOD,
        callback=one_in("fishergraph.multiset", "WEIGHTS"),
        default="edge",
        help="edge (as given), uniform, or symmetric (by the roots of both degrees).",
    ),
]
Teleport = Annotated[
    str | None,
    option(
        "--teleport",
        metavar="X",
        panel=_METHOD,
        callback=_teleport,
        default="0.1",
        help="Features enter as means over the whole graph too, by walks that end with this probability at each step; "
        "none: as they are alone.",
    ),
]
Kernel = Annotated[
    str | None,
    option(
        "--kernel",
        metavar="NAME",
        panel=_METHOD,
        callback=one_in("fishergraph.kernel_map", "KERNELS"),
        default="exp",
        help="exp or identity.",
    ),
]
Bandwidth = Annotated[
    float | None,
    option(
        "--bandwidth",
        metavar="X",
        panel=_METHOD,
        callback=positive,
        default="1.5",
        help="Width of the exponential kernel.",
    ),
]
Attention = Annotated[
    str | None,
    option(
        "--attention",
        metavar="NAME",
        panel=_METHOD,
        callback=one_in("fishergraph.layer", "ATTENTIONS"),
        default="posterior",
        help="posterior (the paper's equations) or reference (the authors' code).",
    ),
]
Family = Annotated[
    str | None,
    option(
        "--family",
        metavar="NAME",
        panel=_METHOD,
        callback=one_in("fishergraph.family", "FAMILIES"),
        default="gaussian-mixture",
        help="gaussian-mixture, diagonal-mixture, gaussian, von-mises-fisher (directions) or multinomial (counts).",
    ),
]
Fisher = Annotated[
    str | None,
    option(
        "--fisher",
        metavar="NAME",
        panel=_METHOD,
        callback=one_in("fishergraph.family.base", "FISHERS"),
        default="approximate",
        help="The Fisher matrix: approximate (in closed form) or exact.",
    ),
]
Tangent = Annotated[
    str | None,
    option(
        "--tangent",
        metavar="NAME",
        panel=_METHOD,
        callback=one_in("fishergraph.family.base", "TANGENTS"),
        default="estimate",
        help="The tangent vector: estimate (the paper's) or score (the Fisher vector).",
    ),
]
