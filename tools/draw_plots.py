"""Draw the pictures of docs/plots.md: `python tools/draw_plots.py`.

The blocks of the page run in order. A picture in the page is the figure of the name `ax` after the block before it.
"""

from __future__ import annotations

import re
from io import BytesIO
from os import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

PAGE = Path(__file__).resolve().parents[1] / "docs" / "plots.md"
PARTS = re.compile(r"^```python\n(.*?)^```$|^!\[[^\]]*\]\(([^)]+)\)$", re.MULTILINE | re.DOTALL)
DPI, COLOURS = 150, 256


def main() -> None:
    names: dict = {}
    with TemporaryDirectory() as folder:
        chdir(folder)  # the page saves figures
        for code, picture in PARTS.findall(PAGE.read_text(encoding="utf-8")):
            if code:
                exec(code, names)
            else:
                draw(names["ax"].figure, PAGE.parent / picture)


def draw(figure, path: Path) -> None:
    """Write a figure with few colours, as a small file."""
    whole = BytesIO()
    figure.savefig(whole, dpi=DPI)
    path.parent.mkdir(exist_ok=True)
    Image.open(whole).convert("RGB").quantize(COLOURS, kmeans=2).save(path, optimize=True)
    print(f"{path.name}: {path.stat().st_size / 1024:.0f} KB")


if __name__ == "__main__":
    main()
