"""Draw docs/images/explorer.png: the explorer page of the bundled Cora, with a node and why it is like another.

python tools/screenshot.py        # needs Chromium, selenium and Pillow
"""

from __future__ import annotations

import io
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import browser
from PIL import Image

from fishergraph import FisherEmbedding, load_graph
from fishergraph.explore import explore

TARGET = Path(__file__).resolve().parents[1] / "docs" / "images" / "explorer.png"
VIEW = "node=31336&with=686532&zoom=0.95&x=-0.3&y=0"
COLOURS = 224


def main() -> None:
    if reason := browser.missing():
        sys.exit(f"the picture {reason}.")
    cora = load_graph("cora")
    model = FisherEmbedding(random_state=0)
    Z = model.fit_transform(cora.X, graph=cora.graph)
    options = {"ids": cora.ids, "labels": cora.y, "names": cora.class_names, "model": model, "X": cora.X}
    page = explore(Z, cora.graph, title="Cora", **options)
    with tempfile.TemporaryDirectory() as folder, browser.browser(1320, 1000) as driver:
        path = page.save(Path(folder) / "page.html")
        browser.set_window(driver, 1320, 940)
        browser.open_page(driver, f"{path.as_uri()}#{VIEW}")
        driver.execute_script("document.getElementById('panel').scrollTop = 0")
        time.sleep(1.5)
        shot = Image.open(io.BytesIO(driver.get_screenshot_as_png())).convert("RGB")
    shot.quantize(COLOURS, dither=Image.Dither.NONE).save(TARGET, optimize=True)
    print(f"{TARGET}: {TARGET.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
