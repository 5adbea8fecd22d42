"""Formulas as MathML, by the converter of docutils.

Browsers draw MathML themselves: no script, no font and no network, for readers as for the build. Formulas can be
selected, searched and read aloud. A bundled MathJax would be megabytes of scripts that do the same later.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

logger = logging.getLogger(__name__)


def formula(node: nodes.Element, as_block: bool) -> str:
    """The MathML of a formula; LaTeX that the converter does not know is a warning, and stays as it is."""
    try:
        return tex2mathml(node.astext(), as_block=as_block)
    except MathError as error:
        logger.warning("this formula cannot be converted: %s", error, location=node)
        return f"<code>{node.astext()}</code>"


def inline(translator: Any, node: nodes.Element) -> None:
    translator.body.append(formula(node, as_block=False))
    raise nodes.SkipNode


def block(translator: Any, node: nodes.Element) -> None:
    translator.body.append(f'<div class="formula">{formula(node, as_block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> None:
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
