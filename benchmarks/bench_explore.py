"""The explorer page: its size, how soon it answers, and how long a click takes, in headless Chromium.

A graph of communities is embedded, and made into a page with a node table, labels and the fitted model. The page is
opened from its file several times. `drawn` is when the map is drawn and `ready` when clicks are answered, both since
the navigation began, and `ready_cpu_s` what the browser computed until then, which other programs on the machine change
little. A click is a real one, and is timed by the browser until its next frame is shown (in steps of 8 ms). WebGL is
drawn on the CPU here, so graphics cards are faster.

    python bench_explore.py                    # 100,000 nodes
    python bench_explore.py --nodes 1000000    # a sample of a million
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import common
import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
import browser

from fishergraph import FisherEmbedding
from fishergraph.datasets.records import undirected_graph
from fishergraph.explore import explore

OPENED = 5
CLICKS = 20
COMMUNITIES = 40
WATCH = """
window.clicks = [];
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (entry.name === "pointerup") window.clicks.push(entry.duration);
}).observe({ type: "event", durationThreshold: 16, buffered: false });
"""


def main() -> None:
    options = common.parser(__doc__)
    options.add_argument("--nodes", type=int, default=100_000)
    options.add_argument("--map", nargs="+", default=["umap", "pca"], help="maps of the page")
    options.add_argument("--keep", type=Path, metavar="FILE", help="where to leave the page")
    arguments = options.parse_args()
    if reason := browser.missing():
        print(f"skipped: this benchmark {reason}.")
        sys.exit(common.SKIPPED)
    n, opened, maps = (2000, 1, ["pca"]) if arguments.quick else (arguments.nodes, OPENED, arguments.map)
    if "umap" in maps:
        common.require("umap")
    rows = common.Rows("explore", arguments)
    data = communities(n)
    model = FisherEmbedding(dim=64, random_state=0, n_jobs=arguments.threads)
    embed, Z = common.timed(lambda: model.fit_transform(data["X"], graph=data["graph"]))
    options = {name: data[name] for name in ("fields", "labels", "X")}
    make, page = common.timed(lambda: explore(Z, data["graph"], model=model, maps=maps, verbose=True, **options))
    size = len(page.html.encode("utf-8"))
    print(f"{n:,} nodes, {Z.shape[1]} columns; embedded in {embed:.0f} s, page made in {make:.0f} s")
    for note in page.notes:
        print(f"  {note}")
    with tempfile.TemporaryDirectory() as folder:
        path = page.save(Path(folder) / "page.html")
        if arguments.keep is not None:
            page.save(arguments.keep)
        places = page._content.maps[0].points
        found = [measured(path, places) for _ in range(opened)]
    clicks = [click for times in found for click in times["clicks"]]
    row = {
        "nodes": n,
        "shown": page.n_nodes,
        "edges": data["graph"].nnz // 2,
        "maps": " ".join(maps),
        "make_s": make,
        "page_mb": size / 1e6,
        "drawn_s": statistics.median(times["drawn"] for times in found) / 1000,
        "ready_s": statistics.median(times["ready"] for times in found) / 1000,
        "ready_cpu_s": statistics.median(times["cpu"] for times in found),
        "slowest_ready_s": max(times["ready"] for times in found) / 1000,
        "click_ms": statistics.median(clicks),
        "slowest_click_ms": max(clicks),
    }
    rows.add(**row)
    common.print_table(list(row), [list(row.values())])


def communities(n: int, seed: int = 0) -> dict[str, Any]:
    """A graph whose communities have features of their own, with a table of texts, dates and missing values."""
    rng = np.random.default_rng(seed)
    group = np.sort(rng.zipf(1.3, n) % COMMUNITIES)
    first = rng.integers(n, size=5 * n)
    near = np.clip(first + np.rint(rng.standard_t(1.5, 5 * n) * 40).astype(np.int64), 0, n - 1)
    second = np.where(rng.random(5 * n) < 0.85, near, rng.integers(n, size=5 * n))
    centres = rng.normal(size=(COMMUNITIES, 64)).astype(np.float32)
    X = centres[group] + 1.5 * rng.normal(size=(n, 64)).astype(np.float32)
    days = np.datetime64("2001-01-01") + rng.integers(8000, size=n)
    fields = pa.table(
        {
            "title": [f"On {'ABCDEFGH'[k % 8]}-{k % 977} and the theory of {k * 7919 % 10007}" for k in range(n)],
            "day": pa.array(days, mask=rng.random(n) < 0.1),
            "score": np.round(rng.gamma(2.0, size=n), 3),
            "country": np.array(["Peru", "Mali", "Nepal", "Chad", "Fiji"])[rng.integers(5, size=n)],
        }
    )
    kept = first != second
    graph = undirected_graph(first[kept], second[kept], n)
    return {"X": X, "graph": graph, "labels": [f"community {k}" for k in group], "fields": fields}


def measured(path: Path, places: np.ndarray) -> dict[str, Any]:
    """Milliseconds until the page is drawn and answers, and those of clicks on nodes, which are at these places."""
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By

    with browser.browser() as driver:
        driver.get("about:blank")
        time.sleep(1)  # until the browser itself has started
        before = browser.cpu_seconds(driver)
        browser.open_page(driver, f"{path.as_uri()}#x=0&y=0&zoom=0.9")
        spent = browser.cpu_seconds(driver) - before
        marks = "return Object.fromEntries(performance.getEntriesByType('mark').map((m) => [m.name, m.startTime]))"
        times = driver.execute_script(marks)
        driver.execute_script(WATCH)
        stage = driver.find_element(By.ID, "stage")
        scale = 0.9 * min(stage.size["width"], stage.size["height"]) / 2
        chosen = set()
        # To the right of the middle, where no tools are over the map.
        clicked = np.random.default_rng(0).permutation(np.flatnonzero(places[:, 0] > -0.2))[:CLICKS]
        for x, y in np.rint(places[clicked] * [scale, -scale]).astype(int).tolist():
            ActionChains(driver).move_to_element_with_offset(stage, x, y).click().perform()
            chosen.add(driver.execute_script("return document.getElementById('node-id')?.textContent"))
        # An event that took less than the threshold is not listed: it counts as 16 ms.
        clicks = driver.execute_async_script("const done = arguments[0]; setTimeout(() => done(window.clicks), 300)")
        print(f"  drawn {times['drawn']:.0f} ms, ready {times['ready']:.0f} ms, {len(chosen)} nodes in {CLICKS} clicks")
        return {**times, "cpu": spent, "clicks": clicks + [16.0] * (CLICKS - len(clicks))}


if __name__ == "__main__":
    main()
