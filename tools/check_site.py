"""Check the built site as its readers meet it: python tools/check_site.py build/docs/html.

Nothing is loaded from another server, every link and picture of the site leads somewhere, every page has a title, every
example has a picture, and llms.txt names files that exist.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LEAST_EXAMPLES = 12
# What a browser loads by itself, rather than when somebody clicks.
LOADED = {("script", "src"), ("img", "src"), ("source", "src"), ("iframe", "src"), ("object", "data")}
LOADING_LINKS = {"stylesheet", "preload", "icon", "modulepreload"}
CSS_URL = re.compile(r"(?:url\(|@import )['\"]?((?:https?:)?//[^'\")]+)")
LISTED = re.compile(r"^- \[[^\]]+\]\(([^)]+)\)", re.MULTILINE)


class Page(HTMLParser):
    """The links, the loaded files, the anchors and the title of a page."""

    def __init__(self, text: str):
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.n_headings = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        self.anchors |= {named[name] for name in ("id", "name") if name in named}
        self.n_headings += tag == "h1"
        if tag == "a" and "href" in named:
            self.links.append(named["href"])
        self.loaded += [named[name] for kind, name in LOADED if kind == tag and name in named]
        if tag == "link" and LOADING_LINKS & set(named.get("rel", "").split()):
            self.loaded.append(named["href"])


def is_elsewhere(link: str) -> bool:
    """Whether a link leaves the site."""
    parts = urlsplit(link)
    return bool(parts.scheme or parts.netloc)


def lost(site: Path, name: str, page: Page, pages: dict[str, Page]) -> Iterator[str]:
    """The links and files of a page that lead nowhere."""
    for link in [*page.links, *page.loaded]:
        if is_elsewhere(link):
            continue
        path, _, anchor = unquote(link.partition("?")[0]).partition("#")
        target = (site / name).parent / path if path else site / name
        inside = target.resolve().relative_to(site).as_posix()
        if not target.is_file():
            yield f"{name}: {link} leads nowhere"
        # In listings of sources the page is enough: names are documented under shorter ones, too.
        elif anchor and not name.startswith("_modules/") and anchor not in pages[inside].anchors:
            yield f"{name}: {link} has no such anchor"


def faults(site: Path) -> Iterator[str]:
    """What is wrong with the site, a line each."""
    files = [file for file in sorted(site.rglob("*.html")) if "_static" not in file.parts]
    pages = {file.relative_to(site).as_posix(): Page(file.read_text(encoding="utf-8")) for file in files}
    for name, page in pages.items():
        yield from (f"{name} loads {link}" for link in page.loaded if is_elsewhere(link) and link[:5] != "data:")
        yield from lost(site, name, page, pages)
        if page.n_headings != 1 and not name.startswith(("_modules/", "genindex", "search", "py-modindex")):
            yield f"{name} has {page.n_headings} titles"
    for style in site.rglob("*.css"):
        yield from (f"{style.name} loads {url}" for url in CSS_URL.findall(style.read_text("utf-8", errors="replace")))
    examples = [name for name in pages if name.startswith("gallery/") and name != "gallery/index.html"]
    if len(examples) < LEAST_EXAMPLES:
        yield f"the gallery has {len(examples)} examples, at least {LEAST_EXAMPLES} are wanted"
    bare = (name for name in examples if not any("sphx_glr" in picture for picture in pages[name].loaded))
    yield from (f"{name} has no picture" for name in bare)
    listed = LISTED.findall((site / "llms.txt").read_text(encoding="utf-8"))
    yield from (f"llms.txt: {path} leads nowhere" for path in listed if not (site / path).is_file())


def main() -> None:
    found = list(faults(Path(sys.argv[1]).resolve()))
    if found:
        sys.exit("\n".join([*found[:40], f"{len(found)} faults of the site"]))
    print("the site is whole, and loads nothing from elsewhere")


if __name__ == "__main__":
    main()
