"""The columns of a node file that are no complete numbers: their kinds, what models need of them, and what is said."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import typer

from fishergraph._errors import InputError
from fishergraph.cli.console import say
from fishergraph.cli.options import wrong_call


def check_one_type(nodes: Any) -> None:
    """Raise a usage error for a node file with the name of its type where there is one type of nodes."""
    typed = re.fullmatch(r"[\w-]+=(.+)", str(nodes)) if isinstance(nodes, Path) and not nodes.exists() else None
    if typed:
        raise typer.BadParameter(
            f"--nodes TYPE=FILE is for fishergraph embed, which takes several types of nodes; here give '{typed[1]}' "
            "and the edges of one relation. nearest, cluster, explore and links --embedding read what embed writes."
        )


def asked_kinds(job: Any) -> dict[str, str]:
    """Return the kinds of columns that --kind names; an unknown one is a wrong call."""
    asked = dict(text.rpartition("=")[::2] for text in getattr(job, "kind", None) or [])
    if asked:
        from fishergraph._validation import look_up
        from fishergraph.tables.decide import KINDS

        for name, kind in asked.items():
            with wrong_call("--kind"):
                if not name:
                    raise InputError(parameter="--kind", value=kind, expected="be NAME=KIND, such as zip=category")
                look_up(KINDS, kind.strip(), f"the kind of the column {name!r}")
    return {name: kind.strip() for name, kind in asked.items()}


def columns_of(model: Any) -> dict[str, Any]:
    """Return which columns of a node file a saved model needs, as arguments of `read_inputs`."""
    if hasattr(getattr(model, "stack_", None), "layout"):
        expected, got = "be of one graph here", "one of several kinds of edges"
        advice = "embed the edges of one kind with --save, or leave --model out"
        raise InputError(parameter="the model of --model", expected=expected, got=got, advice=advice)
    encoder = getattr(model, "encoder_", None)
    if encoder is not None:
        return {"only": [column.name for column in encoder.schema_.used], "typed": True}
    learned = getattr(model, "feature_names_in_", None)
    return {"only": [] if learned is None else learned.tolist()}


def tell_columns(job: Any, encoder: Any, *, of: str = "") -> list[dict[str, Any]] | None:
    """Say in one line what an encoder uses columns as, if there is one; return it for the record.

    `of` is the type of nodes, if there are several.
    """
    if encoder is None:
        return None
    if not job.quiet:
        say(f"columns{of and ' of '}{of}: {encoder.schema_.line()}.")
    return encoder.schema_.to_dict()


def encoded_rows(path: Path, model: Any, X: Any, advice: str) -> Any:
    """The rows of a table as a model encodes them; what differs from the table of the fit is an error."""
    from fishergraph._errors import TableError

    try:
        return model.encoder_.transform(X)
    except TableError as error:
        expected, what = f"have the columns that '{path}' was fitted with", "the node file"
        raise error.revised(parameter=what, expected=expected, advice=f"rename or repair columns{advice}") from error
