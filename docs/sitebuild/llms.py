"""``llms.txt``: a short index of the pages for language models, written from the pages whenever the site is built."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sitebuild.pages import DOCS, ITEM, contents_pages, text_lines

SOURCES = "_sources"
MORE = """
## All names, and examples

- [Reference](api/index.html): every public class and function, with parameters and an example.
- [Command](api/command.html): every option of `fishergraph`.
- [Examples](gallery/index.html): scripts that run, with their pictures.
"""


def entries(text: str) -> list[str]:
    """The items of a page of contents as lines under their headings, with links to the sources of the pages."""
    lines: list[str] = []
    heading = ""
    for line, is_text in text_lines(text):
        match = ITEM.match(line) if is_text else None
        if is_text and line.startswith("## "):
            heading = line
        elif match and match[2].endswith(".md"):
            lines += ["", heading, ""] if heading else []
            heading = ""
            lines.append(f"- [{match[1]}]({SOURCES}/{match[2]}){line[match.end() :]}")
    return lines


def index(docs: Path = DOCS) -> str:
    """The text of ``llms.txt``."""
    facts = (docs / "llms.md").read_text(encoding="utf-8").rstrip()
    pages = contents_pages(docs)
    body = [line for name in ("usage", "method", "project") for line in entries(pages[name])]
    return "\n".join([facts, *body, MORE])


def write(app: Any, exception: Exception | None) -> None:
    if exception is None and app.builder.format == "html":
        (Path(app.outdir) / "llms.txt").write_text(index(), encoding="utf-8")


def setup(app: Any) -> None:
    app.connect("build-finished", write)
