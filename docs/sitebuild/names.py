"""Public names in inline code become links to the reference, so that pages need no marks for it.

``FisherEmbedding``, ``Walk(teleport=0.1)`` and ``fishergraph.scale.plan`` are recognised. A function outside of
`fishergraph` itself needs its package, because words such as ``plan`` and ``train`` mean other things too.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms.post_transforms import SphinxPostTransform

from sitebuild.reference import entries, members

EQUATION = re.compile(r"(Eq\. \d+(?:, \d+)*)")
EQUATIONS = "every-equation-of-the-paper-and-its-function"  # the section of mathematics.md
UNLINKED = (nodes.title, nodes.reference, addnodes.pending_xref)
CALL = re.compile(r"([A-Za-z_][\w.]*)(?:\(.*\))?", re.DOTALL)


@cache
def table() -> dict[str, str]:
    """Name in a text → name in the reference."""
    found: dict[str, str] = {}
    for entry in entries():
        plain = entry.is_class or entry.name.count(".") == 1
        texts = [entry.name, *([entry.short] if plain else [])]
        found |= {text: entry.name for text in texts if text not in found}
        if entry.is_class:
            found |= {f"{entry.short}.{name}": f"{entry.name}.{name}" for name in members(entry.value)}
    return found


def reference_of(code: str) -> str | None:
    """The name in the reference that inline code speaks of."""
    match = CALL.fullmatch(code.strip())
    if match is None:
        return None
    return table().get(match[1])


class LinkNames(SphinxPostTransform):
    """Wrap inline code that names a public object in a reference to it."""

    default_priority = 5  # before references are resolved

    def run(self, **kwargs: Any) -> None:
        here = self.env.docname
        for literal in list(self.document.findall(nodes.literal)):
            if any(isinstance(parent, UNLINKED) for parent in above(literal)):
                continue
            name = reference_of(literal.astext())
            if name is None or here == f"api/{name}":
                continue
            link = addnodes.pending_xref(
                "", refdomain="py", reftype="obj", reftarget=name, refdoc=here, refexplicit=True, refwarn=True
            )
            literal.replace_self(link)
            link += literal
        if here.startswith("api/"):
            self.link_equations(here)

    def link_equations(self, here: str) -> None:
        """Link the equations that docstrings name to the table of equations."""
        table_of_equations = f"{self.app.builder.get_relative_uri(here, 'mathematics')}#{EQUATIONS}"
        for text in list(self.document.findall(nodes.Text)):
            parts = EQUATION.split(text.astext())
            if len(parts) == 1 or any(isinstance(parent, (*UNLINKED, nodes.literal)) for parent in above(text)):
                continue
            linked: list[nodes.Node] = []
            for number, part in enumerate(parts):
                words = nodes.Text(part)
                linked.append(nodes.reference("", "", words, refuri=table_of_equations) if number % 2 else words)
            text.parent.replace(text, linked)


def above(node: nodes.Node) -> list[nodes.Node]:
    """The elements around a node."""
    found = []
    while node.parent is not None:
        node = node.parent
        found.append(node)
    return found


def resolve(app: Any, env: Any, node: addnodes.pending_xref, content: nodes.Element) -> nodes.Element | None:
    """A reference of a docstring to a public name of another package, which need not be written in full."""
    words = node.get("reftarget", "").split(".")
    short, method = words[-1], ".".join(words[-2:])
    name = table().get(method) or table().get(short)
    name = name or next((entry.name for entry in entries() if entry.short == short), None)
    if node.get("refdomain") != "py" or name is None:
        return None
    return env.domains["py"].resolve_xref(env, node["refdoc"], app.builder, "obj", name, node, content)


def setup(app: Any) -> None:
    app.add_post_transform(LinkNames)
    app.connect("missing-reference", resolve)
