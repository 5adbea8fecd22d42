"""What a person tries first, with an installed package: `python -I tools/smoke.py VERSION [EXTRA …]`.

It runs in any folder and writes nothing outside of a temporary one.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

EDGES = "source,target\n" + "".join(f"user {i},user {(i * i + 1) % 30}\n" for i in range(60))


def main(version: str, *extras: str) -> None:
    import numpy as np

    import fishergraph
    from fishergraph import FisherEmbedding, LogisticProbe
    from fishergraph.datasets import load_graph

    assert fishergraph.__version__ == version, fishergraph.__version__
    assert Path(fishergraph.__file__).is_relative_to(sys.prefix), fishergraph.__file__
    cora = load_graph("cora")
    model = FisherEmbedding(random_state=0)
    Z = model.fit_transform(cora.X, graph=cora.graph)
    probe = LogisticProbe().fit(Z, cora.y, train=cora.train, val=cora.val)
    accuracy = probe.score(Z[cora.test], cora.y[cora.test])
    assert accuracy > 0.8, accuracy
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        model.save(folder / "cora.safetensors")
        again = FisherEmbedding.load(folder / "cora.safetensors").transform(cora.X, graph=cora.graph)
        assert np.array_equal(Z, again), "a loaded model gives other vectors"
        check_command(folder)
        for extra in extras:
            EXTRAS.get(extra, lambda folder: None)(folder)
        if not extras:
            check_missing()
    print(f"{', '.join(('core', *extras))}; Cora {accuracy:.3f}")


def check_command(folder: Path) -> None:
    """The command on a table of edges with ids that are text."""
    command = Path(sysconfig.get_path("scripts")) / "fishergraph"
    (folder / "edges.csv").write_text(EDGES)
    for arguments in (["--version"], ["embed", "edges.csv", "--undirected", "-o", "embedding.parquet"]):
        subprocess.run([command, *arguments], cwd=folder, check=True, capture_output=True)
    import pyarrow.parquet as pq

    assert pq.read_table(folder / "embedding.parquet").column_names[0] == "id"


def check_missing() -> None:
    """Without an extra the error names it."""
    from fishergraph.plots import embedding_map

    said = ""
    try:
        embedding_map([[0, 0], [1, 1]], labels=["a", "b"])
    except ImportError as error:
        said = str(error)
    assert "fishergraph[plots]" in said, said or "Matplotlib is here without the extra plots"


def check_plots(folder: Path) -> None:
    from fishergraph.plots import embedding_map

    embedding_map([[0, 0], [1, 1]], labels=["a", "b"]).figure.savefig(folder / "points.png")


def check_torch(folder: Path) -> None:
    import torch

    from fishergraph.nn import FisherConv

    out = FisherConv(5, 8)(torch.randn(4, 5), torch.tensor([[0, 1, 2], [1, 2, 3]]))
    assert out.shape == (4, 8), out.shape


EXTRAS = {"plots": check_plots, "torch": check_torch}


if __name__ == "__main__":
    main(*sys.argv[1:])
