"""`fishergraph demo`: the bundled Cora embedded with the default settings, scored and drawn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from fishergraph.cli.console import explained, printer
from fishergraph.cli.jobs import Debug, Jobs
from fishergraph.cli.record import Run

PICTURE, EMBEDDING = "cora.png", "cora_embedding.parquet"
NEXT = """\
[bold]Your own graph[/bold], from files:

  fishergraph embed edges.csv --nodes nodes.csv --undirected -o embedding.parquet

or in Python, where X holds the features and A is an adjacency matrix, a NetworkX graph, an edge table, …:

  from fishergraph import FisherEmbedding
  Z = FisherEmbedding(random_state=0).fit_transform(X, graph=A)

[bold]fishergraph embed --help[/bold] lists the formats and settings."""


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the picture and the embedding.")] = Path(
        "demo"
    ),
    seed: Annotated[int, typer.Option("--seed", min=0, max=2**32 - 1, help="Random seed.")] = 0,
    jobs: Jobs = None,
    debug: Debug = False,
) -> None:
    """Embed the bundled Cora graph, score it and draw it: half a minute, no network.

    2,708 papers and their citations are embedded without labels; a linear probe then reads the subjects off
    the embedding, from the 140 labels of the public split.
    """
    with explained(debug=debug):
        run_demo(output, seed, jobs)


class Steps:
    """The lines of the demo: what was done and the seconds it took, with a spinner meanwhile."""

    def __init__(self):
        self.console, self.clock = printer(), Run(quiet=True)

    @contextmanager
    def step(self, doing: str) -> Iterator[list[str]]:
        """A step; the body appends its results to the list, as Rich's markup."""
        results: list[str] = []
        with self.console.status(f"{doing} …"), self.clock.stage(doing):
            yield results
        line = f"  [green]✓[/green] {doing:<22} {self.clock.seconds[doing]:5.1f} s   {' '.join(results)}"
        self.console.print(line, soft_wrap=True)


def run_demo(folder: Path, seed: int, jobs: int | None) -> None:
    """Load, embed, score, write, draw."""
    from rich.markup import escape

    picture, table = _prepare(folder)
    steps = Steps()
    steps.console.print("\n[bold]fishergraph[/bold] on Cora: papers, their words and their citations\n")
    with steps.step("load") as results:
        from fishergraph.datasets import load_graph
        from fishergraph.estimators import FisherEmbedding
        from fishergraph.probes import LogisticProbe

        cora = load_graph("cora")
        results.append(f"{cora.n_nodes:,} nodes, {cora.graph.nnz // 2:,} edges, {cora.n_features:,} words")
    with steps.step("embed, without labels") as results:
        estimator = FisherEmbedding(random_state=seed, n_jobs=jobs)
        Z = estimator.fit_transform(cora.X, graph=cora.graph)
        results.append(f"{estimator.n_layers} layers, {Z.shape[1]:,} columns")
    with steps.step("score a linear probe") as results:
        train, val, test = cora.split()
        probe = LogisticProbe().fit(Z, cora.y, train, val)
        accuracy = probe.score(Z[test], cora.y[test])
        results.append(
            f"[bold]{accuracy:.1%}[/bold] of {len(test):,} test papers right (validation {probe.val_score_:.1%}), "
            f"from {len(train)} labels"
        )
    with steps.step("write the embedding") as results:
        from fishergraph.io.embedding_file import write_embedding

        names = estimator.get_feature_names_out().tolist()
        write_embedding(table, cora.ids, Z, names, blocks=estimator.blocks_)
        results.append(escape(str(table)))
    with steps.step("draw the picture") as results:
        title = f"Cora embedded by fishergraph without labels; a linear probe is {accuracy:.1%} right"
        results.append(escape(_draw(Z, cora, seed, title, picture)))
    steps.console.print(f"\n  {steps.clock.total():.1f} s in all.\n")
    steps.console.print(NEXT + "\n", soft_wrap=True)


def _prepare(folder: Path) -> tuple[Path, Path]:
    """The paths of the picture and the table, in a folder that exists and can be written to."""
    from fishergraph.io.files import check_folder

    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"the output must be a folder, got the file '{folder}'; name another with -o.")
    folder.mkdir(parents=True, exist_ok=True)
    check_folder(folder / PICTURE)
    check_folder(folder / EMBEDDING)
    return folder / PICTURE, folder / EMBEDDING


def _draw(Z: Any, cora: Any, seed: int, title: str, path: Path) -> str:
    """Draw a t-SNE map of the embedding; return the path, or how to install Matplotlib if it is missing."""
    from fishergraph._optional import require

    try:
        require("matplotlib", extra="plots")
    except ImportError:
        return "left out, it needs Matplotlib: pip install 'fishergraph[plots]'"
    from fishergraph.plots import embedding_map
    from fishergraph.plots.figures import new_axes, save

    (ax,) = new_axes(1, 1, width=8.0, height=5.6)
    embedding_map(Z, labels=cora.y, names=cora.class_names, title=title, ax=ax, random_state=seed)
    save(ax.figure, path)
    return f"{path} (t-SNE)"
