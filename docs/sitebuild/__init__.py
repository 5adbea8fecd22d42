"""What the site needs beside Sphinx: small extensions that keep the pages plain Markdown.

pages       comments of a page that become tabs, included files and navigation; links that leave the folder
mathml      formulas as MathML, which browsers draw without a script or a font to download
reference   the pages of the reference, from the public names of the package
names       names in inline code become links to the reference
gallery     settings of the gallery of examples
llms        llms.txt, the index for language models
"""

from __future__ import annotations

from typing import Any

from sitebuild import llms, mathml, names, pages, reference


def setup(app: Any) -> dict[str, Any]:
    """Register every part with Sphinx."""
    for part in (pages, mathml, reference, names, llms):
        part.setup(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
