"""Every public object prints as one short line, whatever arrays it holds."""

from __future__ import annotations

import importlib
import inspect

import networkx as nx
import numpy as np
import pytest

from fishergraph import (
    EM,
    Explainer,
    FisherEmbedding,
    FisherGraphEmbedding,
    FisherSetEmbedding,
    GaussianMixture,
    GraphProbe,
    LinkProbe,
    LogisticProbe,
    Neighbourhood,
    Nystrom,
    Readout,
    Structure,
    Vectors,
    Walk,
    as_graph,
    as_graphs,
    as_relations,
    auto_embed,
    em_estimate,
    em_means,
    learn_family,
    load_graph,
    neighbourhoods,
    node_tuples,
    split_edges,
)
from fishergraph._repr import short_repr
from fishergraph.datasets import GraphSet, Preparation, load_tables
from fishergraph.device import Device
from fishergraph.family import FAMILIES
from fishergraph.graphs import EdgeTags
from fishergraph.io.embedding_file import write_embedding
from fishergraph.io.tables import read_embedding
from fishergraph.kernel_map import Identity
from fishergraph.lab import nested_scores
from fishergraph.multiset import MULTISETS, choose_multiset
from fishergraph.ops import Responsibilities, choose_engine
from fishergraph.scale import GraphSize, StoreWriter, plan, update, verify, write_store
from fishergraph.tables import TableEncoder
from fishergraph.vectors import SuggestedLinks
from models import graph_model

MOST = 300
RNG = np.random.default_rng(0)
PUBLIC = (
    *("", ".em", ".family", ".multiset", ".structural", ".graphs", ".datasets", ".probes", ".auto", ".scale"),
    *(".vectors", ".plots", ".lab.baselines", ".lab", ".nn", ".ops"),
)


@pytest.fixture(scope="module")
def examples(tmp_path_factory) -> dict[str, object]:
    """One object of every public class that does not need torch, most of them with thousands of numbers."""
    cora = load_graph("cora")
    X = RNG.random((900, 40))
    A = nx.to_scipy_sparse_array(nx.gnm_random_graph(900, 3000, seed=0))
    graph, sets = as_graph(A), neighbourhoods(A)
    weighted = as_graph(nx.relabel_nodes(nx.gnm_random_graph(9, 20, seed=0), "node {}".format))
    graphs = as_graphs([nx.path_graph(9), nx.star_graph(300)])
    model = FisherEmbedding(n_layers=2, dim=32, random_state=0).fit(X, graph=A)
    whole = graph_model(nodes__n_layers=1, random_state=0).fit(graphs)
    tuples = node_tuples(as_graph(nx.path_graph(30)), 2, 1)
    thetas = [learn_family(choose(), X, 8, rng=0, n_iter=1) for choose in FAMILIES.values()]
    store = write_store(tmp_path_factory.mktemp("store") / "s", graph, X[:, :4])
    path = store.path.parent / "z.npz"
    write_embedding(path, np.arange(900), X)
    sizes, writer = GraphSize(20_000, 100_000, 8), StoreWriter(store.path.parent / "w")
    split, vectors = split_edges(graph, random_state=0), Vectors(X)
    clusters = vectors.cluster(2, X=X)
    y, folds = np.arange(90) % 2, [(np.arange(60), np.arange(60, 90)), (np.arange(30, 90), np.arange(30))]
    return {
        "FisherEmbedding": FisherEmbedding(block_weights=np.arange(999.0), random_state=np.random.RandomState(0)),
        "many parameters": FisherEmbedding(**dict.fromkeys(FisherEmbedding().get_params(deep=False), "x")),
        "FisherSetEmbedding": FisherSetEmbedding(dim=7),
        "FisherGraphEmbedding": FisherGraphEmbedding(inputs=["tags"] * 99),
        "GraphProbe": GraphProbe(heads=("logistic",)),
        "LogisticProbe": LogisticProbe(Cs=np.logspace(-3, 3, 900)),
        "Graph": graph,
        "named graph": weighted,
        "Graphs": graphs,
        "GraphData": cora,
        "TableData": load_tables("penguins"),
        "TableEncoder": TableEncoder(drop=["id"]).fit(load_tables("penguins").nodes),
        "EdgeTags": EdgeTags(np.arange(9000), np.arange(9000)),
        "GraphSet": GraphSet("name", graphs, np.arange(2), (), (), "source"),
        "Preparation": Preparation(),
        "Multisets": sets,
        "LiftedSets": choose_multiset("paths")(graph),
        "SplitSets": Neighbourhood(direction="both")(graph),
        "NodeTuples": tuples,
        "Responsibilities": Responsibilities(X, X),
        "Engine": choose_engine(),
        "EMMeans": em_means(X, sets, X[:4]),
        "estimates": em_estimate(X, sets, thetas[0])[0],
        "NestedScores": nested_scores({"z": X[:90]}, y, folds, Cs=(1.0,), gammas=(1.0,), inner=2),
        "Stack": model.stack_,
        "Layer": model.stack_.layers[1],
        "NystromMap": model.stack_.input_map,
        "NodeCode": whole.code_,
        "readouts": whole.readouts_[0],
        "fitted": model,
        **{type(theta).__name__: theta for theta in thetas},
        **{f"family {name}": choose() for name, choose in FAMILIES.items()},
        **{f"rule {name}": choose_multiset(name) for name in MULTISETS},
        "EM": EM(n_iter=3),
        "Nystrom": Nystrom(bandwidth=0.7),
        "Walk": Walk(teleport=0.3),
        "Structure": Structure("local", weight=0.2),
        "Identity": Identity(),
        "Readout": Readout(family=GaussianMixture(sharpness=0.3)),
        "Device": Device("cuda"),
        "StructureMap": FisherEmbedding(1, 2, 8, random_state=0).fit(graph=A).structure_,
        "AutoEmbedding": auto_embed(X, A, np.arange(900) % 2, settings=[{"dim": 4}], random_state=0),
        "Store": store,
        "StoreWriter": writer,
        "StoredEmbedding": FisherEmbedding(1, 2, 4, structure=None, random_state=0).fit_transform(store),
        "EmbeddingData": read_embedding(path),
        "GraphSize": sizes,
        "Plan": plan(sizes, FisherEmbedding(dim=8, structure=None), memory="16G"),
        "Verification": verify(store),
        "Explainer": Explainer(model, X, graph=A),
        "Relations": as_relations({"cites": A, "writes": A.T.tocsr()}),
        "RelationsSummary": as_relations({"cites": A, "writes": A.T.tocsr()}).summary(),
        "RelationSummary": as_relations({"cites": A}).summary().relations[0],
        "Bipartite": as_relations({("author", "writes", "paper"): [(0, 1)]}).edges["author", "writes", "paper"],
        "LinkProbe": LinkProbe(FisherEmbedding(dim=7)),
        "EdgeSplit": split,
        "Links": split.train,
        "Vectors": vectors,
        "Neighbours": vectors.neighbours(3),
        "Clusters": clusters,
        "Trait": clusters.traits[0][0],
        "SuggestedLinks": SuggestedLinks(np.arange(9000), np.arange(9000), np.ones(9000)),
        "UpdateReport": update(store, edges=[(0, 1), (2, 3)]),
    }


def test_one_short_line(examples):
    for name, example in examples.items():
        line = repr(example)
        assert 0 < len(line) <= MOST, (name, line)
        assert "\n" not in line, name
        assert "array(" not in line, name


def test_what_the_lines_say(examples):
    assert repr(as_graph(nx.path_graph(1500))) == "Graph(1,500 nodes, 2,998 edges)"
    graph = nx.Graph()
    graph.add_edge("a", "b", weight=2.0)
    assert repr(as_graph(graph)) == "Graph(2 nodes, 2 edges, weighted, with ids)"
    assert repr(neighbourhoods(graph)) == "Multisets(2 sets over 2 points, 4 weighted members)"
    assert repr(examples["EMMeans"]) == "EMMeans(means=float64 900 × 4 × 40, mass=float64 900 × 4)"
    assert repr(FisherSetEmbedding(dim=7, kernel="identity")) == "FisherSetEmbedding(dim=7, kernel='identity')"
    assert repr(LogisticProbe(Cs=np.ones(50))) == "LogisticProbe(Cs=float64 50)"
    assert repr(examples["EmbeddingData"]) == "EmbeddingData(900 nodes, 40 columns)"
    assert repr(examples["Plan"]).startswith("Plan(20,000 nodes, 100,000 edges: ")
    assert repr(examples["NystromMap"]).startswith("NystromMap(landmarks=float64 32 × 40, root=")


def test_every_public_class_has_an_example(examples):
    pytest.importorskip("torch")
    named = {name for package in PUBLIC for name in importlib.import_module(f"fishergraph{package}").__all__}
    modules = [importlib.import_module(f"fishergraph{package}") for package in PUBLIC]
    classes = {getattr(m, name) for m in modules for name in named if inspect.isclass(getattr(m, name, None))}
    seen = {kind for example in examples.values() for kind in type(example).__mro__}
    # Modules of PyTorch print as trees; the others have no objects that hold arrays.
    torch = {"FisherAggregation", "FisherConv", "FisherNet", "NystromHead"}
    others = {
        "BoostedProbe",
        "DaskExecutor",
        "Baseline",
        "Recipe",
        "FisherClassifier",
        "History",
        "LinearMap",
        "Network",
        "Training",
        "WeightedMixture",
    }
    assert {kind.__name__ for kind in classes - seen} <= torch | others


def test_objects_of_training():
    torch = pytest.importorskip("torch")
    from fishergraph import FisherClassifier
    from fishergraph.lab.baselines import BASELINES, baseline
    from fishergraph.nn import History, Network, Training, WeightedMixture
    from fishergraph.ops.tensor_edges import tensor_sets
    from fishergraph.probes import BoostedProbe

    history = History(rows=[dict.fromkeys(("epoch", "loss", "seconds"), 0.123456)] * 500)
    sets = tensor_sets(torch.ones((2, 900), dtype=torch.int64), n_sets=900, n_points=900)
    classifier = FisherClassifier(training=Training(fan_out=(10,) * 200))
    found = [
        history,
        sets,
        classifier,
        Network(),
        Training(max_epochs=3),
        WeightedMixture(),
        BoostedProbe(),
        *map(baseline, BASELINES),
    ]
    assert all(len(repr(one)) <= MOST and "\n" not in repr(one) for one in found)
    assert repr(history).startswith("History(rows=list of 500, best_epoch=0")


def test_pages_are_cut():
    from collections import namedtuple

    record = namedtuple("Record", [f"field_{k}" for k in range(99)])(*range(99))
    assert len(short_repr(record)) < MOST
    assert short_repr(record).endswith("…)")
