"""The columns of a node file: their kinds, what models need of them, and what is said."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fishergraph._errors import InputError
from fishergraph.cli.console import say
from fishergraph.cli.options import wrong_call

if TYPE_CHECKING:
    from fishergraph.cli.jobs import Inputs


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


def tell_columns(job: Any, encoder: Any, inputs: Inputs | None = None, *, of: str = "") -> list[dict[str, Any]] | None:
    """Say in one line what columns are used as; return what an encoder learned of them, for the record.

    `of` is the type of nodes, if there are several.
    """
    parts = [] if encoder is None else [encoder.schema_.line()]
    if inputs is not None and (parts or inputs.names):
        parts = parts or [_plain_line(inputs)]
        parts += [note for note in inputs.notes if "decimal" in note or "encoding" in note]
    if parts and not job.quiet:
        say(f"columns{of and ' of '}{of}: {'; '.join(parts)}.")
    return None if encoder is None else encoder.schema_.to_dict()


def _plain_line(inputs: Inputs) -> str:
    """The line about columns of numbers that are used as they are, and what is odd about some."""
    from fishergraph.io.spreads import notes_of_numbers
    from fishergraph.tables.schema import listed_kind

    odd = [note.text for note in notes_of_numbers(inputs.names, inputs.X)]
    return "; ".join([f"{listed_kind('number', inputs.names)} as they are", *odd])


def encoded_rows(path: Path, model: Any, X: Any, advice: str) -> Any:
    """The rows of a table as a model encodes them; what differs from the table of the fit is an error."""
    from fishergraph._errors import TableError

    try:
        return model.encoder_.transform(X)
    except TableError as error:
        expected, what = f"have the columns that '{path}' was fitted with", "the node file"
        raise error.revised(parameter=what, expected=expected, advice=f"rename or repair columns{advice}") from error
