"""The pages of the reference: one for every public class and function, and one for the commands.

The names come from the package, so a new one has its page without a change here. They are grouped by the module that
defines them; a module that no group names has a group of its own, titled by the first sentence of its docstring.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from functools import cache, cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = "api"
# Packages whose `__all__` is public, beside the names of `fishergraph` itself.
PACKAGES = ("nn", "datasets", "plots", "scale", "probes", "explore", "explain", "vectors")
# Names that are public elsewhere; those of the families compute equations of the paper.
FAMILY = ("log_joint", "log_likelihood", "fisher_root", "fisher_ratio", "exact_root", "goldberger", "kl_bound")
SINGLE = (
    *(f"fishergraph.family.{name}" for name in (*FAMILY, "monte_carlo_kl")),
    "fishergraph.device.Device",
    "fishergraph.published.PublishedMixture",
    "fishergraph.published.PublishedNystrom",
    "fishergraph.io.embedding_file.EmbeddingWriter",
    "fishergraph.io.embedding_file.write_embedding",
    "fishergraph.io.tables.read_embedding",
)
GROUPS = (
    ("Estimators", ("estimators", "auto")),
    ("Classifiers on embeddings", ("probes",)),
    ("What an embedding says", ("explain", "vectors", "explore")),
    ("Components", ("em", "kernel_map", "walk", "structural", "device")),
    ("Multisets", ("multiset",)),
    ("Families", ("family",)),
    ("Kernels and bounds", ("kernels", "embedding", "bounds")),
    ("Graphs and tables", ("graph", "graphs", "tables")),
    ("Data sets", ("datasets",)),
    ("Files", ("io",)),
    ("PyTorch Geometric", ("nn", "ops")),
    ("Larger than memory", ("scale",)),
    ("Plots", ("plots",)),
    ("Settings", ("config",)),
    ("The published code", ("published",)),
)


class Entry(NamedTuple):
    """A public object: the dotted name that users import, the object, and the package that defines it."""

    name: str
    value: Any
    package: str

    @property
    def short(self) -> str:
        return self.name.rpartition(".")[2]

    @property
    def is_class(self) -> bool:
        return inspect.isclass(self.value)


def public_names() -> Iterator[str]:
    """The dotted names of everything that is public, those of `fishergraph` first."""
    package = import_module("fishergraph")
    yield from (f"fishergraph.{name}" for name in package.__all__ if name != "__version__")
    for name in PACKAGES:
        if find_spec(f"fishergraph.{name}") is not None:
            module = import_module(f"fishergraph.{name}")
            yield from (f"fishergraph.{name}.{attribute}" for attribute in getattr(module, "__all__", ()))
    yield from SINGLE


@cache
def entries() -> tuple[Entry, ...]:
    """The public classes and functions, each once, under its first name."""
    found: dict[int, Entry] = {}
    for name in public_names():
        home, _, attribute = name.rpartition(".")
        value = getattr(import_module(home), attribute)
        if inspect.isclass(value) or inspect.isroutine(value):
            found.setdefault(id(value), Entry(name, value, value.__module__.split(".")[1]))
    return tuple(found.values())


def groups() -> list[tuple[str, list[Entry]]]:
    """The groups that have entries, in order; those of modules that `GROUPS` does not name come last."""
    place = {package: title for title, packages in GROUPS for package in packages}
    made: dict[str, list[Entry]] = {title: [] for title, _ in GROUPS}
    for entry in entries():
        # What a public package offers belongs to it, whichever module defines it.
        package = entry.name.split(".")[1] if entry.name.count(".") > 1 else entry.package
        title = place.get(package) or module_title(package)
        made.setdefault(title, []).append(entry)
    return [(title, sorted(group, key=order)) for title, group in made.items() if group]


def order(entry: Entry) -> tuple[bool, str]:
    """Classes before functions, then by name."""
    return not entry.is_class, entry.short.lower()


def module_title(package: str) -> str:
    """The first sentence of a module's docstring."""
    text = inspect.getdoc(import_module(f"fishergraph.{package}")) or package
    return re.split(r"[.:\n]", text, maxsplit=1)[0]


def members(kind: type) -> list[str]:
    """The methods and properties that this library defines and documents, those of the class itself first."""
    found: dict[str, type] = {}
    for owner in kind.__mro__:
        for name in vars(owner):
            if not name.startswith("_") and name not in found:
                found[name] = owner
    ours = {name: owner for name, owner in found.items() if owner.__module__.startswith("fishergraph")}
    return [name for name, owner in ours.items() if shown(owner, name) and inspect.getdoc(getattr(kind, name))]


def shown(owner: type, name: str) -> bool:
    """Whether an attribute is a method or property, rather than a field or a constant."""
    value = vars(owner)[name]
    function = getattr(value, "__func__", value)
    return inspect.isfunction(function) or isinstance(function, (property, cached_property))


# --- pages -------------------------------------------------------------------------------------------------


def titled(text: str, mark: str = "=") -> str:
    return f"{text}\n{mark * len(text)}\n"


def object_page(entry: Entry) -> str:
    """The page of a class or a function, and the examples that use it."""
    directive = "autoclass" if entry.is_class else "autofunction"
    home = entry.name.rpartition(".")[0]
    lines = [titled(entry.short), f".. currentmodule:: {home}\n", f".. {directive}:: {entry.name}"]
    for name in members(entry.value) if entry.is_class else ():
        is_property = isinstance(inspect.getattr_static(entry.value, name), (property, cached_property))
        lines += ["", f"   .. auto{'property' if is_property else 'method'}:: {entry.name}.{name}"]
    lines += ["", f".. minigallery:: {entry.name}", "   :add-heading: Examples that use it", ""]
    return "\n".join(lines)


def index_page() -> str:
    """All public names by group, with their first sentences."""
    lines = [titled("API reference"), INTRODUCTION]
    for title, group in groups():
        lines += [titled(title, "-"), ".. autosummary::", "   :nosignatures:", ""]
        lines += [f"   {entry.name}" for entry in group]
        lines += ["", ".. toctree::", "   :hidden:", f"   :caption: {title}", ""]
        lines += [f"   {entry.short} <{entry.name}>" for entry in group]
        lines += [""]
    return "\n".join([*lines, ".. toctree::", "   :hidden:", "   :caption: Command line", "", "   command", ""])


INTRODUCTION = """\
Every public name. Names of ``fishergraph`` itself are imported as ``from fishergraph import FisherEmbedding``, others
from the package in front of them. Options of the command ``fishergraph`` are on :doc:`a page of their own <command>`.
"""


def command_page() -> str:
    """The commands and their options, from the command line itself."""
    from typer.main import get_command

    cli = import_module("fishergraph.cli")
    root: Any = get_command(cli.app)
    lines = [titled("The command fishergraph"), COMMAND]
    for path, command in commands(root, ("fishergraph",)):
        lines += [titled(" ".join(path), "-"), paragraphs(command.help or ""), usage(path, command)]
        lines += options(command)
    return "\n".join(lines)


COMMAND = """\
``fishergraph COMMAND --help`` shows the same. Options that are components take a name, or a name with options:
``--multiset "ppr(teleport=0.05)"``; ``--multiset help`` lists them.
"""


def commands(group: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The commands of a group and of the groups in it, with the words that call them."""
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if hasattr(command, "list_commands"):
            yield from commands(command, (*path, name))
        elif not command.hidden:
            yield (*path, name), command


def paragraphs(text: str) -> str:
    """The help of a command; lines that begin with the command's name are code."""
    lines = []
    for line in inspect.cleandoc(text).splitlines():
        shown = re.sub(r"\[/?(bold|dim|italic)\]", "", line).strip()
        lines.append(f"``{shown}``\n" if shown.startswith("fishergraph ") else escaped(shown))
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """Text without marks that reStructuredText would read."""
    return re.sub(r"([*`|_\\])", r"\\\1", text)


def argument_name(parameter: Any) -> str:
    return parameter.metavar or parameter.name.upper()


def usage(path: tuple[str, ...], command: Any) -> str:
    words = [argument_name(parameter) for parameter in command.params if parameter.param_type_name == "argument"]
    return f".. code-block:: console\n\n   $ {' '.join([*path, *words])} [OPTIONS]\n"


def options(command: Any) -> list[str]:
    """A table of the arguments and options of a command."""
    shown = [one for one in command.params if not getattr(one, "hidden", False) and one.name != "help"]
    if not shown:
        return []
    lines = [".. list-table::", "   :class: options", ""]
    for one in shown:
        names = [argument_name(one)] if one.param_type_name == "argument" else [*one.opts, *one.secondary_opts]
        lines += [f"   * - {', '.join(f'``{name}``' for name in names)}"]
        lines += [f"     - {escaped(' '.join((one.help or '').split()))}"]
    return [*lines, ""]


# --- Sphinx ------------------------------------------------------------------------------------------------


def write(app: Any) -> None:
    """Write the pages; a page whose text is the same keeps its time, so that it is not read again."""
    folder = Path(app.srcdir) / FOLDER
    folder.mkdir(exist_ok=True)
    pages = {"index": index_page(), "command": command_page()}
    pages |= {entry.name: object_page(entry) for entry in entries()}
    for old in folder.glob("*.rst"):
        if old.stem not in pages:
            old.unlink()
    for name, text in pages.items():
        file = folder / f"{name}.rst"
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")


def setup(app: Any) -> None:
    app.connect("builder-inited", write)
