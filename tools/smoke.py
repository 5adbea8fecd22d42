"""What a person tries first, with an installed package: `python -I tools/smoke.py VERSION [EXTRA …]`.

It runs in any folder and writes nothing outside of a temporary one.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

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
            EXTRAS[extra](folder)
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


def check_umap(folder: Path) -> None:
    from fishergraph.explore import explore

    page = explore(points(), maps=["umap"], path=folder / "page.html")
    assert page.n_nodes == N_POINTS, page.n_nodes


def check_lance(folder: Path) -> None:
    written_and_read(folder / "embedding.lance")


def check_zarr(folder: Path) -> None:
    written_and_read(folder / "embedding.zarr")


def written_and_read(path: Path) -> None:
    """An embedding goes into a file and comes back with its bits."""
    from fishergraph.io.embedding_file import write_embedding
    from fishergraph.io.tables import read_embedding

    Z = points()
    write_embedding(path, [f"user {i}" for i in range(len(Z))], Z)
    again = read_embedding(path)
    assert (again.Z == Z).all(), path.suffix
    assert again.ids[1] == "user 1", again.ids


def check_approximate(folder: Path) -> None:
    from fishergraph import Vectors

    found = Vectors(points()).nearest(5, k=3, approximate=True)
    assert len(found.to_arrow()) == 3, found


def check_automl(folder: Path) -> None:
    import numpy as np

    from fishergraph.probes.boosted import BoostedProbe

    Z, rows = points(), np.arange(N_POINTS)
    for tuner in ("flaml", "optuna"):
        probe = BoostedProbe(tuner=tuner, time_budget=None, n_trials=2)
        probe.fit(Z, Z[:, 0] > 0, train=rows[::2], val=rows[1::2])
        assert len(probe.models_) == 1, probe


def check_dask(folder: Path) -> None:
    import numpy as np
    from distributed import Client

    from fishergraph import FisherEmbedding, load_graph
    from fishergraph.scale import Store, write_store

    cora = load_graph("cora")
    model = FisherEmbedding(n_layers=1, dim=16, random_state=0)
    expected = model.fit_transform(cora.X, graph=cora.graph)
    store = write_store(folder / "cora.store", cora.graph, cora.X)
    with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as client:
        Z = model.fit_transform(Store(store.path, client=client))
    assert np.array_equal(np.asarray(Z[:]), expected), "a worker gives other vectors"


def check_cloud(folder: Path) -> None:
    import fsspec

    from fishergraph.scale import ingest

    with fsspec.open("memory://edges.csv", "w") as file:
        file.write(EDGES)
    store = ingest("memory://edges.csv", folder / "edges.store")
    assert store.n_nodes > 0, store


N_POINTS = 200


def points() -> Any:
    """Rows of an embedding."""
    import numpy as np

    return np.random.default_rng(0).normal(size=(N_POINTS, 6)).astype(np.float32)


EXTRAS = {
    "approximate": check_approximate,
    "automl": check_automl,
    "cloud": check_cloud,
    "dask": check_dask,
    "lance": check_lance,
    "plots": check_plots,
    "torch": check_torch,
    "umap": check_umap,
    "zarr": check_zarr,
}


if __name__ == "__main__":
    main(*sys.argv[1:])
