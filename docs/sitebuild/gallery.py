"""The gallery: every script of `examples/`, run while the site is built; an example that fails stops the build."""

from __future__ import annotations

from typing import Any

from sitebuild.pages import DOCS, ITEM

EXAMPLES = DOCS.parent / "examples"


def order() -> list[str]:
    """The names of the scripts in the order of the list in `examples/README.md`."""
    return [link for _, link in ITEM.findall((EXAMPLES / "README.md").read_text(encoding="utf-8"))]


class InOrder:
    """The key of sphinx-gallery that sorts scripts by their place in the list."""

    def __init__(self, folder: str):
        self.names = order()

    def __call__(self, name: str) -> int:
        return self.names.index(name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


def settings() -> dict[str, Any]:
    """The settings of sphinx-gallery."""
    return {
        "examples_dirs": [str(EXAMPLES)],
        "gallery_dirs": ["gallery"],
        "filename_pattern": r"\.py$",
        "within_subsection_order": "sitebuild.gallery.InOrder",
        "backreferences_dir": "api/uses",
        "doc_module": ("fishergraph",),
        "abort_on_example_error": True,
        "download_all_examples": False,
        "image_scrapers": ("matplotlib",),
        "capture_repr": ("_repr_html_", "__repr__"),
        "show_memory": False,
        "write_computation_times": False,
        "min_reported_time": 1e9,
        "show_signature": False,
        "remove_config_comments": True,
        "copyfile_regex": r"^$",
    }
