"""Pages are plain Markdown that GitHub shows; a few comments say what the site makes of them.

``<!-- contents -->``          the links that begin the items of its lists are the navigation below this page
``<!-- page: NAME.md -->``     an item of such a list, as soon as the page exists
``<!-- tabs -->``              up to ``<!-- end of tabs -->`` every line ``**Title**`` begins a tab
``<!-- include: PATH -->``     the text of a file of the repository, without its first heading

Links that leave the folder lead to the page of the site that shows the same, else to the repository.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[1]
REPOSITORY = "https://github.com/fishergraph/fishergraph/blob/main"
# Files and folders of the repository that the site shows at another place.
SHOWN = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "examples": "gallery/index.rst",
    "src/fishergraph": "api/index.rst",
    "src/fishergraph/cli": "api/command.rst",
}

LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
ITEM = re.compile(r"- \[([^\]]+)\]\(([^)#\s]+)\)")
FENCE = re.compile(r"\s*(```+|~~~+)")
PAGE = re.compile(r"<!-- page: (\S+) -->")
INCLUDE = re.compile(r"<!-- include: (\S+) -->")
TAB = re.compile(r"\*\*(.+)\*\*")
CONTENTS = "<!-- contents -->"


def text_lines(text: str) -> Iterator[tuple[str, bool]]:
    """The lines of a page, and whether each is text rather than code."""
    fence = ""
    for line in text.splitlines():
        mark = FENCE.match(line)
        inside = bool(fence)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence):
            fence = ""
        yield line, not (inside or mark)


def in_text(change: Callable[[str], str], text: str) -> str:
    """The page with its lines of text changed, and its code as it is."""
    return "\n".join(change(line) if is_text else line for line, is_text in text_lines(text)) + "\n"


# --- links -------------------------------------------------------------------------------------------------


def target(link: str, folder: Path, docs: Path = DOCS) -> str:
    """Where a link of a file in `folder` leads on the site, from a page of `docs`."""
    if re.match(r"[a-z]+:|#", link):
        return link
    path, anchor, name = link.partition("#")
    root = docs.parent
    file = Path(os.path.normpath(folder / path))
    if not file.is_relative_to(root):
        return link
    inside = file.relative_to(root).as_posix()
    if inside in SHOWN:
        return SHOWN[inside] + anchor + name
    if file.suffix == ".py" and file.parent == root / "examples":
        return f"gallery/{file.stem}.rst"
    if file.is_relative_to(docs):
        return file.relative_to(docs).as_posix() + anchor + name
    return f"{REPOSITORY}/{inside}{anchor}{name}"


def relinked(text: str, folder: Path, docs: Path = DOCS) -> str:
    """The text of a file in `folder` with links for the site; pictures stay files."""

    def change(match: re.Match[str]) -> str:
        picture, words, link = match.groups()
        if picture:
            path = link if re.match(r"[a-z]+:", link) else os.path.relpath(folder / link, docs)
            return f"![{words}]({path})"
        return f"[{words}]({target(link, folder, docs)})"

    return in_text(lambda line: LINK.sub(change, line), text)


def included(text: str, docs: Path = DOCS) -> str:
    """The page with the files that it includes; their first heading is left out."""

    def change(line: str) -> str:
        match = INCLUDE.fullmatch(line)
        if match is None:
            return line
        file = (docs / match[1]).resolve()
        _, _, body = file.read_text(encoding="utf-8").partition("\n")
        return relinked(body, file.parent, docs)

    return in_text(change, text)


# --- tabs --------------------------------------------------------------------------------------------------


def tabbed(text: str) -> str:
    """The page with its groups of bold titles as tabs."""
    lines: list[str] = []
    inside = opened = False
    for line, is_text in text_lines(text):
        title = TAB.fullmatch(line) if is_text and inside else None
        if is_text and line == "<!-- tabs -->":
            inside, line = True, "`````{tab-set}"
        elif is_text and line == "<!-- end of tabs -->":
            line = "````\n`````" if opened else "`````"
            inside = opened = False
        elif title:
            line = ("````\n" if opened else "") + f"````{{tab-item}} {title[1]}"
            opened = True
        lines.append(line)
    return "\n".join(lines) + "\n"


# --- navigation --------------------------------------------------------------------------------------------


def heading(text: str) -> str:
    """The first heading of a page."""
    return next(line.lstrip("# ") for line, is_text in text_lines(text) if is_text and line.startswith("# "))


def first_sentence(text: str) -> str:
    """The first sentence of the first paragraph of a page, without its links."""
    paragraphs = ["".join(part) for part in re.split(r"\n\s*\n", text)]
    first = next((part for part in paragraphs if re.match(r"[\w*`_\"“]", part)), "")
    plain = LINK.sub(lambda match: match[2], " ".join(first.split()))
    return re.split(r"(?<=[.?!:])\s", plain, maxsplit=1)[0]


def placed(text: str, docs: Path = DOCS) -> str:
    """The page with an item for every page that is named in a comment and exists, unless an item has it already."""
    listed = {link for _, link in ITEM.findall(text)}

    def change(line: str) -> str:
        match = PAGE.fullmatch(line)
        if match is None:
            return line
        file = docs / match[1]
        if match[1] in listed or not file.is_file():
            return ""
        page = file.read_text(encoding="utf-8")
        return f"- [{heading(page)}]({match[1]}): {first_sentence(page)}"

    lines = (change(line) if is_text else line for line, is_text in text_lines(text))
    # A comment without a page must not break the list around it.
    return "\n".join(line for line, old in zip(lines, text.splitlines(), strict=True) if line or not old) + "\n"


def sections(text: str) -> list[tuple[str, list[str]]]:
    """The headings of a page of contents, and the links that begin the items below each."""
    found: list[tuple[str, list[str]]] = [("", [])]
    for line, is_text in text_lines(text):
        if is_text and line.startswith("## "):
            found.append((line.removeprefix("## "), []))
        elif is_text and (item := ITEM.match(line)):
            found[-1][1].append(item[2])
    return [(title, links) for title, links in found if links]


def contents_pages(docs: Path = DOCS) -> dict[str, str]:
    """The pages with navigation below them, by name, with items for the pages that exist."""
    pages = {file.stem: file.read_text(encoding="utf-8") for file in sorted(docs.glob("*.md"))}
    return {name: placed(text, docs) for name, text in pages.items() if CONTENTS in text.splitlines()}


def unlisted(docs: Path = DOCS) -> list[str]:
    """The pages that no page of contents names."""
    listed = {link for text in contents_pages(docs).values() for _, links in sections(text) for link in links}
    apart = {"index.md", "llms.md"}  # the first page, and the beginning of llms.txt
    return [file.name for file in sorted(docs.glob("*.md")) if file.name not in listed | apart]


def with_navigation(text: str, name: str, docs: Path = DOCS) -> str:
    """The page with the hidden trees of its contents; the guide also gets the pages that nothing lists."""
    if CONTENTS not in text.splitlines():
        return text
    groups = sections(text)
    if name == "usage" and (more := unlisted(docs)):
        groups.append(("More", more))
    for title, links in groups:
        pages = "\n".join(re.sub(r"\.(md|rst)$", "", target(link, docs, docs)) for link in links)
        caption = f":caption: {title}\n" if title else ""
        text += f"\n```{{toctree}}\n:hidden:\n{caption}\n{pages}\n```\n"
    return text


# --- Sphinx ------------------------------------------------------------------------------------------------


def site_text(text: str, name: str, docs: Path = DOCS) -> str:
    """A page as the site reads it."""
    text = with_navigation(placed(text, docs), name, docs)
    return tabbed(included(relinked(text, docs, docs), docs))


def read(app: Any, name: str, source: list[str]) -> None:
    if (DOCS / f"{name}.md").is_file():
        for path in INCLUDE.findall(source[0]):
            app.env.note_dependency(os.path.normpath(DOCS / path))
        source[0] = site_text(source[0], name)


def setup(app: Any) -> None:
    app.connect("source-read", read)
