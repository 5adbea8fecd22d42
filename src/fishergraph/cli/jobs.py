"""What a command was asked for, a dataclass whose fields are its options, and what it reads from the files."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from fishergraph._errors import InputError
from fishergraph.cli.columns import asked_kinds, check_one_type, encoded_rows
from fishergraph.cli.config import load_config
from fishergraph.cli.console import Bar, explained
from fishergraph.cli.edges import (
    EdgeFileOptions,
    check_edge_options,
    holds_graph,
    job_graph,
    load_job_edges,
    node_text,
    with_added,
)
from fishergraph.cli.options import DATA, PICTURE, RUN, Parameter, Setting, documented, flag_of, negated, option
from fishergraph.cli.record import record_path

if TYPE_CHECKING:
    import numpy as np

    from fishergraph.graph import Graph
    from fishergraph.graph_summary import GraphSummary

_PANELS = (None, DATA, "Method", "Network", "Training", PICTURE, RUN)
_LAST = ("config", "quiet", "debug")
_SHORT = {"nodes": ("-n",), "output": ("-o",), "jobs": ("-j",), "quiet": ("-q",), "k": ("-k",), "colour": ("--color",)}
_ON = {
    PICTURE: ("title", "width"),
    "Method": ("preset", "tune", "budget"),
    RUN: (
        *("memory", "store", "name", "overwrite", "dask", "workers", "jobs", "engine", "config", "quiet", "debug"),
        *("seed", "save", "checkpoint", "resume", "log", "plot"),
    ),
}
_MORE: dict[str, dict[str, Any]] = {
    "seed": {"min": 0, "max": 2**32 - 1},
    "jobs": {"min": 1},
    "workers": {"min": 1},
    "config": {"callback": load_config, "is_eager": True},
}


@dataclass(frozen=True, kw_only=True)
class Job(EdgeFileOptions):
    """The options of every command, as the help describes them.

    Parameters
    ----------
    edges : EDGES
        Edge file: .csv, .tsv, .txt, .edges or .el (or .gz or .zst of these), .parquet, .npz, .graphml, .gml, .json or
        .mtx. For embed also a store, which fishergraph ingest makes.
    output : FILE
        File to write.
    nodes : FILE
        Node file: a row per node, with an id column and columns of any type; or what embed wrote.
    id_column : NAME, default=id, node or node_id, or the one that names the ends of the edges, else the row numbers
        Column of the node ids.
    settings : dict
        The options that are generated from estimators and components: texts and flags, by parameter.
    jobs : N, default=all cores
        Threads; any number gives the same result.
    engine : NAME, default=the first that can
        What computes EM: numba, scipy, triton or torch.
    config : FILE
        TOML file whose keys are the long options; the command line wins.
    quiet : bool
        No bar, hint or summary.
    debug : bool
        Show the traceback of a failure.
    """

    edges: Path
    output: Path
    nodes: Path | None = None
    id_column: str | None = None
    settings: dict[str, Any]
    jobs: int | None = None
    engine: str | None = None
    config: Path | None = None
    quiet: bool = False
    debug: bool = False


@dataclass(frozen=True, kw_only=True)
class LearningJob(Job):
    """The options of every command that learns.

    Parameters
    ----------
    drop : NAME
        Column that is not a feature, such as a label; repeatable.
    kind : NAME=KIND
        What a column of the node file is: number, boolean, category, date, text, tags or vector; repeatable.
    undirected : bool
        Add the reverse of every edge, or keep edges as given.
    seed : N, default=drawn and recorded
        Random seed.
    """

    drop: list[str] | None = None
    kind: list[str] | None = None
    undirected: bool | None = None
    seed: int | None = None

    @property
    def parameters(self) -> dict[str, Any]:
        """The settings, with that of --undirected, an option of the multiset, if it was given."""
        return self.settings | ({} if self.undirected is None else {"multiset__undirected": self.undirected})

    @property
    def says_direction(self) -> bool:
        """Whether an option says that edges have a direction, or that they have none."""
        return self.undirected is not None or "direct" in self.settings.get("multiset", "")


def with_options(settings: list[Setting]) -> Callable[[Callable[[Any], None]], Callable[..., None]]:
    """Turn a function of a job into a command whose options are the fields of the job, and these settings."""

    def decorate(function: Callable[[Any], None]) -> Callable[..., None]:
        (job,) = inspect.signature(function, eval_str=True).parameters.values()
        kind, written = job.annotation, options_of(job.annotation)
        entries: list[tuple[str, Any, Any]] = []  # name, default, annotation
        for field in fields(kind):
            default = inspect.Parameter.empty if field.default is MISSING else field.default
            generated = [(setting.parameter.name, None, setting.annotation) for setting in settings]
            entries += generated if field.name == "settings" else [(field.name, default, written[field.name])]
        entries.sort(key=_order)

        @wraps(function)
        def command(**values: Any) -> None:
            texts = {setting.path: values.pop(setting.parameter.name) for setting in settings}
            given = {path: text for path, text in texts.items() if text is not None}
            asked = kind(**values, **({"settings": given} if settings else {}))
            check_one_type(getattr(asked, "nodes", None))
            with explained(debug=asked.debug):
                function(asked)

        command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [
                inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
                for name, default, annotation in entries
            ]
        )
        command.__annotations__ = {name: annotation for name, _, annotation in entries}
        return command

    return decorate


def options_of(kind: type) -> dict[str, Any]:
    """Return the fields of a job as types for typer, with help from the docstrings of the job and its bases."""
    described: dict[str, Parameter] = {}
    for base in reversed(kind.__mro__[:-1]):
        described |= documented(base.__module__.removeprefix("fishergraph.").replace(".", "/") + ".py", base.__name__)
    options = {}
    for name, hint in get_type_hints(kind).items():
        entry, flag = described[name], flag_of(name)
        more: dict[str, Any] = {} if entry.kind == "bool" else {"metavar": entry.kind}
        if name in getattr(kind, "ARGUMENTS", ("edges",)):
            options[name] = Annotated[hint, typer.Argument(**more, readable=False, show_default=False, help=entry.text)]
            continue
        names = (f"{flag}/{negated(flag)}" if hint == bool | None else flag, *_SHORT.get(name, ()))
        panel = next((panel for panel, fields in _ON.items() if name in fields), DATA)
        help_text = {"panel": panel, "help": entry.text, "default": entry.default}
        options[name] = Annotated[hint, option(*names, **help_text, **more, **_MORE.get(name, {}))]
    return options


def _order(entry: tuple[str, Any, Any]) -> tuple[int, bool, bool]:
    """The rank of an option in the help: by panel, required ones first, those of every command last."""
    name, default, annotation = entry
    panel = annotation.__metadata__[0].rich_help_panel
    return _PANELS.index(panel), default is not inspect.Parameter.empty, name in _LAST


_SHARED = {name: annotation.__metadata__[0] for name, annotation in options_of(Job).items()}
Jobs = Annotated[int | None, _SHARED["jobs"]]
Quiet = Annotated[bool, _SHARED["quiet"]]
Debug = Annotated[bool, _SHARED["debug"]]


# --- files ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Inputs:
    """What was read."""

    X: Any  # (node, feature), a table of columns that are no complete numbers, or None without features
    graph: Graph
    names: list[str]  # of the features
    facts: dict[str, Any]  # for the record
    summary: GraphSummary | None = None  # of the edge file; None for a store
    notes: tuple[str, ...] = ()  # what was found in a text file of nodes

    @property
    def ids(self) -> np.ndarray:
        """The node ids in row order."""
        import numpy as np

        return np.arange(self.graph.n_nodes) if self.graph.ids is None else self.graph.ids


def check_tables(job: Job, drop: list[str] | None = None) -> None:
    """Raise a usage error if columns of a table are named and there is no table, or for choices that do not exist."""
    from fishergraph.io.npz import ARRAYS

    lists_nodes = job.edges.suffix.lower() == ".npz" or holds_graph(job.edges)
    check_edge_options(job, has_nodes=job.nodes is not None or lists_nodes)
    table = holds_graph(job.edges) if job.nodes is None else job.nodes.suffix.lower() not in ARRAYS
    kinds = getattr(job, "kind", None)
    if not table and (job.id_column is not None or drop or kinds):
        named = "--kind needs" if kinds else "--id-column and --drop need"
        raise typer.BadParameter(f"{named} a node table: give --nodes with a text or Parquet file.")
    asked_kinds(job)


def check_outputs(
    job: Job,
    *others: Path | None,
    model: Path | None = None,
    only: Path | None = None,
    check: Callable[[Path], Any] | None = None,
) -> None:
    """Raise if an output cannot be written, or would replace a file that is read; `check` is that of the first."""
    from fishergraph.io.files import check_folder

    (check or check_folder)(job.output)
    taken = {os.path.realpath(path) for path in (job.edges, job.nodes, model, only, job.config) if path is not None}
    for path in (job.output, record_path(job.output), *others):
        if path is None:
            continue
        if path is not job.output:
            check_folder(path)
        if os.path.realpath(path) in taken:
            raise InputError(f"every file must have its own path, got '{path}' twice; choose another output.")
        taken.add(os.path.realpath(path))


def node_file(job: Job) -> Path | None:
    """Return the file that lists the nodes: a separate one, or the npz or the graph of the edges."""
    if job.nodes is None and holds_graph(job.edges):
        return job.edges
    if job.nodes is not None or job.edges.suffix.lower() != ".npz":
        return job.nodes
    from fishergraph.io.files import check_readable, unreadable
    from fishergraph.io.npz import npz_keys

    head, keys = check_readable(job.edges), npz_keys(job.edges)
    if not keys:
        raise unreadable(job.edges, head, "other bytes")
    return None if keys.isdisjoint(("x", "x_data", "ids")) else job.edges


@contextmanager
def reading(job: Job, bar: Bar) -> Iterator[Callable[[int], Any]]:
    """Fill the bar with what is read: the function to call with the bytes of the edge file and the node file."""
    from fishergraph.io.folders import folder_bytes

    total = sum(folder_bytes(path) for path in (job.edges, job.nodes) if path is not None and path.exists())
    bar.expect({"reading": total})
    with bar("reading", total) as part:
        yield part.update
    bar.seconds.pop("reading")
    bar.forget()


def read_inputs(
    job: Job,
    *,
    drop: list[str] | None = None,
    only: list[str] | None = None,
    typed: bool = False,
    advance: Callable[[int], Any] = lambda n: None,
) -> Inputs:
    """Return the graph and the features, their rows in the order of the node file.

    Columns to `drop` are not features; `only` names those that are, if it is given. Features are a table if they are
    not complete numbers, or `typed`. `advance` is called with the bytes that are read.
    """
    from fishergraph.io.folders import folder_bytes
    from fishergraph.io.node_table import read_node_features

    nodes, kinds = node_file(job), asked_kinds(job)
    file = load_job_edges(job, advance)
    ids, X, names, key, notes = None, None, [], None, ()
    if nodes is not None:
        read: dict[str, Any] = {"only": only, "typed": typed or bool(kinds), "named": file.ends, "advance": advance}
        read["text"] = node_text(job)
        ids, X, names, key, notes = read_node_features(nodes, job.id_column, drop=drop or [], **read)
    if kinds:
        from fishergraph.io.tables import check_columns_exist
        from fishergraph.tables.columns import with_kinds

        check_columns_exist(str(nodes), names, list(kinds))
        X = with_kinds(X, kinds)
    graph = job_graph(job, file, ids, nodes)
    X, summary = with_added(X, graph.n_nodes), graph.summary()
    if key is not None and nodes != job.edges:
        summary = replace(summary, columns={**summary.columns, "id": key})
    rows = 0 if graph.reading is None else graph.reading.rows
    facts = {
        "edges": {"path": job.edges, "bytes": job.edges.stat().st_size, "rows": rows, "summary": summary.as_dict()},
        "nodes": None if nodes is None else {"path": nodes, "bytes": folder_bytes(nodes), "notes": notes},
        "id_column": key,
        "drop": drop or [],
        "n_nodes": graph.n_nodes,
        "n_edges": graph.n_edges,
        "weighted": graph.weights is not None,
        "n_features": len(names),
        "sparse_features": hasattr(X, "indptr"),
    }
    return Inputs(X if names else None, graph, names, facts, summary, notes)


def read_only_nodes(path: Path | None, inputs: Inputs) -> tuple[Any, np.ndarray]:
    """Return the nodes that a file lists, an id per line, as `transform` takes them, and their ids; None means all."""
    if path is None:
        return None, inputs.ids
    from fishergraph.io.files import check_readable
    from fishergraph.io.lookup import IdRows

    check_readable(path)
    try:
        lines = path.read_text("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise InputError(f"'{path}' must be text in UTF-8 with an id per line, got other bytes; convert it.") from error
    wanted = [line.strip() for line in lines if line.strip()]
    rows = IdRows(inputs.graph.ids, inputs.graph.n_nodes, "nodes").rows(wanted, f"the lines of '{path}'")
    ids = inputs.ids[rows]
    return rows if inputs.graph.ids is None else ids, ids


def match_features(path: Path, model: Any, inputs: Inputs, *, advice: str = "") -> Any:
    """Return the features in the order in which a saved model learned them, or None if they come from the edges.

    `advice` is what the command offers for features that are too many. The model forgets the names of its features,
    because the matrix has none and its columns are in order.
    """
    if getattr(model, "encoder_", None) is not None and inputs.names:
        return encoded_rows(path, model, inputs.X, advice)
    names, learned = inputs.names, list(vars(model).pop("feature_names_in_", []))
    vars(getattr(model, "embedding_", model)).pop("feature_names_in_", None)  # of a classifier's probe
    width = len(names) or (model.n_features_in_ if model.structural_ else 0)
    missing = sorted(set(learned) - set(names), key=learned.index)
    if names and model.structural_:
        raise InputError(
            f"'{path}' was fitted on structural features and needs no others, got a node file with {len(names)} "
            f"features; give ids alone{advice}."
        )
    if missing or width != model.n_features_in_:
        got = ", ".join(map(repr, names[:10])) + (", …" if len(names) > 10 else "") or "no node features"
        want = f" ({', '.join(map(repr, missing[:3]))} among them)" if missing else ""
        raise InputError(
            f"the features must be the {model.n_features_in_} that '{path}' was fitted with{want}, got {got}; "
            f"rename columns{advice}."
        )
    X: Any = inputs.X
    if X is None or learned in ([], names):
        return X
    position = {name: j for j, name in enumerate(names)}
    return X[:, [position[name] for name in learned]]


def save_with_names(estimator: Any, inputs: Inputs, path: Path) -> None:
    """Save a fitted estimator with the names of its features, which `match_features` compares."""
    import numpy as np

    if inputs.X is not None and estimator.encoder_ is None:
        estimator.feature_names_in_ = np.array(inputs.names, dtype=object)
    estimator.save(path)


def structure_of(estimator: Any) -> dict[str, Any] | None:
    """Return what the record says of structural columns, or None if there are none."""
    structure = estimator.structure_
    if structure is None:
        return None
    return {"columns": structure.structure.kinds, "width": structure.width, "seed": structure.seed}
