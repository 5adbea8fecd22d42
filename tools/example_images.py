"""Draw the pictures of `docs/images` that are the first figures of examples: python tools/example_images.py [NAME …].

Pages show them on code hosts, too, where no gallery is built.
"""

from __future__ import annotations

import io
import runpy
import sys
from pathlib import Path

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
NAMES = ("karate_club", "what_n_layers_does", "what_walk_does", "what_n_anchors_does", "what_sharpness_does")


def main() -> None:
    for name in sys.argv[1:] or NAMES:
        plt.close("all")
        runpy.run_path(str(ROOT / "examples" / f"{name}.py"))
        picture = io.BytesIO()
        plt.figure(plt.get_fignums()[0]).savefig(picture, dpi=110, format="png")
        colours = Image.open(picture).convert("RGB").quantize(256)  # a third of the bytes
        colours.save(ROOT / "docs" / "images" / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
