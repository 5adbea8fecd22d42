"""The pages of the site: their navigation and links, what becomes of their comments, the reference, and llms.txt."""

from __future__ import annotations

import importlib
import re
import shlex
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
# The questions of users, in the order in which they ask them.
ORDER = [
    *("start", "own-table", "networkx", "directions", "structure", "new-nodes", "parameters"),
    *("cross-validation", "heads", "sets", "graphs", "pyg", "gpu", "large-graphs"),
    *("planning", "clusters", "files", "explain", "explorer", "plots"),
    *("same-bits", "errors", "coming-from", "when-not"),
]

pytest.importorskip("sphinx")
pytest.importorskip("torch_geometric")


def part(name: str) -> ModuleType:
    """A module of docs/sitebuild."""
    if str(DOCS) not in sys.path:
        sys.path.insert(0, str(DOCS))
    return importlib.import_module(f"sitebuild.{name}")


pages, mathml, reference, names, llms = (part(name) for name in ("pages", "mathml", "reference", "names", "llms"))


# --- navigation --------------------------------------------------------------------------------------------


def test_the_guide_has_its_questions_in_order():
    listed = [
        link.removesuffix(".md") for _, links in pages.sections(pages.contents_pages()["usage"]) for link in links
    ]
    assert [name for name in listed if name in ORDER] == ORDER


def test_every_page_is_listed_once_and_exists():
    listed = [link for text in pages.contents_pages().values() for _, links in pages.sections(text) for link in links]
    files = [link for link in listed if link.endswith(".md")]
    assert all((DOCS / link).is_file() for link in files)
    # The first page lists the start beside the guide.
    twice = {link for link in files if files.count(link) > 1}
    assert twice <= {"start.md"}
    assert not set(pages.unlisted()) & set(files)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of pages, one of which waits for another."""
    docs = tmp_path / "docs"
    docs.mkdir()
    contents = (
        "# Guide\n\n<!-- contents -->\n\n## A\n\n- [One](one.md): x\n<!-- page: late.md -->\n- [Two](two.md): y\n"
    )
    (docs / "usage.md").write_text(contents)
    (docs / "one.md").write_text("# One\n")
    (docs / "two.md").write_text("# Two\n")
    return docs


def test_a_page_to_come_takes_its_place_when_it_exists(folder: Path):
    text = (folder / "usage.md").read_text()
    assert "late" not in pages.placed(text, folder)
    assert pages.sections(pages.placed(text, folder)) == [("A", ["one.md", "two.md"])]
    (folder / "late.md").write_text("# Late\n\nIt answers **why**. And more.\n")
    assert pages.sections(pages.placed(text, folder)) == [("A", ["one.md", "late.md", "two.md"])]
    assert "- [Late](late.md): It answers **why**." in pages.placed(text, folder)
    # Somebody wrote an item for it: the comment adds no second one.
    by_hand = text + "- [Late](late.md): z\n"
    assert pages.placed(by_hand, folder).count("late.md") == 1


def test_pages_that_nothing_lists_come_last(folder: Path):
    (folder / "forgotten.md").write_text("# Forgotten\n")
    assert pages.unlisted(folder) == ["forgotten.md", "usage.md"]
    text = pages.with_navigation(pages.placed((folder / "usage.md").read_text(), folder), "usage", folder)
    trees = re.findall(r":caption: (\w+)\n\n((?:[\w-]+\n)+)", text)
    assert trees == [("A", "one\ntwo\n"), ("More", "forgotten\nusage\n")]


# --- what becomes of a page --------------------------------------------------------------------------------


def test_bold_titles_become_tabs():
    text = "**before**\n<!-- tabs -->\n**a**\n\n```python\n**b**\n```\n**c**\n\nx\n<!-- end of tabs -->\n**after**\n"
    made = pages.tabbed(text).splitlines()
    assert made[:3] == ["**before**", "`````{tab-set}", "````{tab-item} a"]
    assert "**b**" in made  # code stays
    assert made[made.index("````{tab-item} c") - 1] == "````"
    assert made[-3:] == ["````", "`````", "**after**"]


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("heads.md#probabilities", "heads.md#probabilities"),
        ("../examples/first_map.py", "gallery/first_map.rst"),
        ("../examples", "gallery/index.rst"),
        ("../src/fishergraph", "api/index.rst"),
        ("../CONTRIBUTING.md", "contributing.md"),
        ("../src/fishergraph/walk.py", f"{pages.REPOSITORY}/src/fishergraph/walk.py"),
        ("https://example.org/a.md", "https://example.org/a.md"),
        ("#below", "#below"),
    ],
)
def test_links_lead_to_what_the_site_shows(link: str, expected: str):
    assert pages.target(link, DOCS) == expected


def test_links_in_code_stay():
    text = "[a](../CHANGELOG.md)\n```\n[a](../CHANGELOG.md)\n```\n![b](../results/figure4.png)\n"
    assert pages.relinked(text, DOCS).splitlines() == [
        "[a](changelog.md)",
        *["```", "[a](../CHANGELOG.md)", "```"],
        "![b](../results/figure4.png)",
    ]


def test_an_included_file_has_its_links_from_its_own_folder():
    text = pages.included("# Changes\n\n<!-- include: ../CHANGELOG.md -->\n")
    assert text.count("\n# ") == 0
    assert "(docs/" not in text
    assert "(large-graphs.md)" in text


# --- links and formulas of the pages -----------------------------------------------------------------------


def slug(heading: str) -> str:
    """The anchor that GitHub, and the site, give to a heading."""
    words = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


def anchors(path: Path) -> set[str]:
    """The anchors of a page; repeated headings have numbers."""
    found: dict[str, int] = {}
    for line, is_text in pages.text_lines(path.read_text(encoding="utf-8")):
        if is_text and (match := re.match(r"#+ (.*)", line)):
            name = slug(match[1])
            found[name] = found.get(name, -1) + 1
    return {f"{name}-{number}" if number else name for name, most in found.items() for number in range(most + 1)}


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md", ROOT / "CHANGELOG.md"], ids=lambda path: path.name)
def test_anchors_of_links_exist(page: Path):
    lost = []
    for line, is_text in pages.text_lines(page.read_text(encoding="utf-8")):
        for _, _, link in pages.LINK.findall(line) if is_text else ():
            path, found, anchor = link.partition("#")
            target = (page.parent / path if path else page).resolve()
            if found and "://" not in link and target.suffix == ".md" and anchor not in anchors(target):
                lost.append(link)
    assert not lost


def test_every_formula_can_be_drawn():
    formulas = [formula for page in PAGES for formula in re.findall(r"(?m)^\$\$\n(.*?)\n\$\$$", page.read_text(), re.S)]
    assert len(formulas) > 10
    for formula in formulas:
        assert mathml.tex2mathml(formula, as_block=True).startswith("<math")
    with pytest.raises(mathml.MathError):
        mathml.tex2mathml(r"\nosuchcommand", as_block=True)


# --- equations ---------------------------------------------------------------------------------------------


def equations() -> dict[int, list[str]]:
    """The table of equations: number → the names in its column of functions."""
    text = (DOCS / "mathematics.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| (\d+) \| [^|]* \| ([^|]*) \|", text.split("## Every equation")[1].split("\n## ")[0])
    return {int(number): re.findall(r"`([^`]+)`", functions) for number, functions in rows}


def test_every_equation_has_functions_that_exist():
    table = equations()
    assert sorted(table) == list(range(1, 19))
    for functions in table.values():
        assert functions
        assert all(names.reference_of(function) for function in functions)


def test_functions_that_compute_an_equation_stand_in_its_row():
    table = equations()
    for entry in reference.entries():
        summary = (entry.value.__doc__ or "").strip().partition("\n")[0]
        for numbers in () if entry.is_class else re.findall(r"\(Eq\. ([\d, ]+)", summary):
            for number in map(int, numbers.replace(",", " ").split()):
                named = {names.reference_of(function) for function in table[number]}
                assert entry.name in named, f"{entry.name} names Eq. {number}, whose row has {named}"


def test_tests_that_the_table_names_exist():
    text = (DOCS / "mathematics.md").read_text(encoding="utf-8").split("## Every equation")[1].split("\n## ")[0]
    defined = re.findall(r"(?m)^def (\w+)", (ROOT / "tests" / "reference.py").read_text(encoding="utf-8"))
    named = re.findall(r"`reference\.(\w+)`", text)
    assert named
    assert set(named) <= set(defined)


# --- reference ---------------------------------------------------------------------------------------------


def test_every_public_object_has_a_place():
    listed = [entry.name for _, group in reference.groups() for entry in group]
    assert len(listed) == len(set(listed))
    public = {id(entry.value) for _, group in reference.groups() for entry in group}
    documented = importlib.import_module("test_docstrings").public_objects()
    assert {name for name, value in documented.items() if id(value) not in public} == set()


def test_an_unknown_package_has_a_group_of_its_own(monkeypatch: pytest.MonkeyPatch):
    known = [group for group in reference.GROUPS if group[0] != "Kernels and bounds"]
    monkeypatch.setattr(reference, "GROUPS", tuple(known))
    titles = [title for title, _ in reference.groups()]
    assert "Gram matrices of nodes, sets, graphs for kernel machines" in titles


def test_methods_of_the_class_come_before_inherited_ones():
    from fishergraph import FisherEmbedding

    found = reference.members(FisherEmbedding)
    assert found.index("fit") < found.index("get_params")
    assert "set_fit_request" not in found  # scikit-learn's


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("FisherEmbedding", "fishergraph.FisherEmbedding"),
        ("Walk(teleport=0.1)", "fishergraph.Walk"),
        ("FisherEmbedding.preset('fast')", "fishergraph.FisherEmbedding.preset"),
        ("fishergraph.scale.plan", "fishergraph.scale.plan"),
        ("plan", None),  # a word of the command line, too
        ("n_layers=2", None),
    ],
)
def test_names_in_code_are_recognised(code: str, expected: str | None):
    assert names.reference_of(code) == expected


def test_commands_are_listed_with_their_options():
    page = reference.command_page()
    for command in ("fishergraph embed", "fishergraph data fetch", "fishergraph lab run"):
        assert f"\n{command}\n---" in page
    assert "``--undirected``, ``--directed``" in page


COMMAND = re.compile(r"(?m)^(?:\$ | {4})?(fishergraph [a-z][^\n]*)")


def written_commands(page: Path) -> list[list[str]]:
    """The calls of the command on a page, as words."""
    lines = pages.text_lines(page.read_text(encoding="utf-8"))
    code = "\n".join(line for line, is_text in lines if not is_text or line.startswith("    "))
    return [shlex.split(line, comments=True) for line in COMMAND.findall(code.replace("\\\n", " "))]


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda path: path.name)
def test_commands_on_pages_have_options_that_exist(page: Path):
    from typer.main import get_command

    known = dict(reference.commands(get_command(importlib.import_module("fishergraph.cli").app), ("fishergraph",)))
    for words in written_commands(page):
        command = known.get(tuple(words[:2])) or known.get(tuple(words[:3]))
        assert command, f"{page.name}: {' '.join(words)} is no command"
        options = {name for option in command.params for name in [*option.opts, *option.secondary_opts]} | {"--help"}
        unknown = [word for word in words if re.match(r"--?[a-z]", word) and word.partition("=")[0] not in options]
        assert not unknown, f"{page.name}: {' '.join(words)} has unknown options {unknown}"


def test_the_commands_of_the_first_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    documents = importlib.import_module("test_documents")
    blocks = documents.python_blocks((DOCS / "start.md").read_text(encoding="utf-8"))
    files = next(block.code for block in blocks if "write_text" in block.code)
    exec(files, {})
    (words,) = [words for words in written_commands(DOCS / "start.md") if words[1] == "embed"]
    importlib.import_module("commands").ok(*words[1:])
    assert (tmp_path / words[words.index("-o") + 1]).is_file()


# --- llms.txt ----------------------------------------------------------------------------------------------


def test_llms_txt_names_the_pages():
    text = llms.index()
    assert text.startswith("# fishergraph\n\n> ")
    listed = re.findall(r"\]\(_sources/([\w-]+)\.md\)", text)
    assert len(listed) == len(set(listed))
    for name in ORDER:
        assert name in listed
        assert re.search(rf"\(_sources/{name}\.md\): \S", text), f"{name} has no description"
    assert all((DOCS / f"{name}.md").is_file() for name in listed)


# --- the check of the built site ---------------------------------------------------------------------------


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A whole site of twelve examples."""
    folder = tmp_path / "html"
    (folder / "gallery").mkdir(parents=True)
    (folder / "_sources").mkdir()
    (folder / "_sources" / "a.md").write_text("# a\n")
    (folder / "llms.txt").write_text("- [a](_sources/a.md)\n")
    (folder / "sphx_glr.png").write_bytes(b"")
    (folder / "index.html").write_text('<h1 id="top">t</h1><a href="gallery/e1.html#here">e</a>')
    for number in range(12):
        page = '<h1 id="here">e</h1><img src="../sphx_glr.png"><a href="https://example.org">out</a>'
        (folder / "gallery" / f"e{number}.html").write_text(page)
    return folder


@pytest.fixture
def check_site(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("check_site")


def test_a_whole_site_has_no_faults(site: Path, check_site: Any):
    assert list(check_site.faults(site)) == []


@pytest.mark.parametrize(
    ("file", "text", "fault"),
    [
        ("index.html", '<h1>t</h1><script src="https://cdn.example.org/x.js"></script>', "loads https://cdn"),
        ("index.html", '<h1>t</h1><a href="lost.html">x</a>', "lost.html leads nowhere"),
        ("index.html", '<h1>t</h1><a href="gallery/e1.html#lost">x</a>', "no such anchor"),
        ("index.html", "<p>no title</p>", "has 0 titles"),
        ("gallery/e1.html", '<h1 id="here">e</h1>', "has no picture"),
        ("theme.css", "@import url(https://fonts.example.org/a.css);", "theme.css loads https://fonts"),
        ("llms.txt", "- [b](_sources/b.md)\n", "b.md leads nowhere"),
    ],
)
def test_a_fault_of_the_site_is_seen(site: Path, check_site: Any, file: str, text: str, fault: str):
    (site / file).write_text(text)
    assert any(fault in line for line in check_site.faults(site))


def test_a_small_gallery_is_a_fault(site: Path, check_site: Any):
    (site / "gallery" / "e2.html").unlink()
    assert any("has 11 examples" in line for line in check_site.faults(site))
