"""What multisets of subgraphs tell apart that neighbourhoods do not, and what they cannot either.

Each pair of graphs below has one colouring under Weisfeiler and Lehman's refinement, or under the local refinement of
pairs of nodes. Graphs are compared by their nodes' embeddings, as multisets: one is fitted, the other only transformed.
"""

import warnings

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import reference as ref
import reference_multisets as slow
from fishergraph import FisherEmbedding, GaussianMixture, Hops, Paths, Tuples, as_graph, node_tuples
from fishergraph.layer import Run
from fishergraph.passes import Pass

APART, ALIKE = 1e-5, 1e-9


def joined(first, second):
    """Two graphs, with an edge between their first nodes."""
    both = nx.disjoint_union(first, second)
    both.add_edge(0, first.number_of_nodes())
    return both


def with_chord(n, chord):
    graph = nx.cycle_graph(n)
    graph.add_edge(0, chord)
    return graph


def shrikhande():
    """On Z_4 × Z_4, two nodes are joined if they differ by ±(0, 1), ±(1, 0) or ±(1, 1)."""
    steps = [(0, 1), (1, 0), (1, 1)]
    edges = [(4 * i + j, 4 * ((i + a) % 4) + (j + b) % 4) for i in range(4) for j in range(4) for a, b in steps]
    return nx.Graph(edges)


def rook():
    """The 4 × 4 rook's graph: strongly regular with the parameters of Shrikhande's, (16, 6, 2, 2)."""
    return nx.convert_node_labels_to_integers(nx.line_graph(nx.complete_bipartite_graph(4, 4)))


PAIRS = {
    "triangles": (nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3)), nx.cycle_graph(6)),
    "decalin": (with_chord(10, 5), joined(nx.cycle_graph(5), nx.cycle_graph(5))),
    "circulant": (nx.circulant_graph(11, [1, 2]), nx.circulant_graph(11, [1, 3])),
    "rook": (rook(), shrikhande()),
}


def gap(pair, multiset, n_layers=3, structure=None):
    """The largest difference between the sorted rows of two graphs without features."""
    first, second = (as_graph(nx.relabel.convert_node_labels_to_integers(graph)) for graph in PAIRS[pair])
    settings = {"normalize": False, "counts": True, "family": GaussianMixture(variance=1.0), "random_state": 0}
    model = FisherEmbedding(n_layers, 4, 48, multiset=multiset, structure=structure, n_jobs=1, **settings)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "asked for")
        rows = [model.fit_transform(np.ones((first.n_nodes, 2)), graph=first)]
    rows.append(model.transform(np.ones((second.n_nodes, 2)), graph=second))
    one, two = (block[np.lexsort(np.round(block, 7).T)] for block in rows)
    return np.abs(one - two).max()


@pytest.mark.parametrize("pair", PAIRS)
def test_the_pairs_have_one_colouring_and_differ(pair):
    colours, graphs = [], [nx.convert_node_labels_to_integers(graph) for graph in PAIRS[pair]]
    assert not nx.is_isomorphic(*graphs)
    both = nx.disjoint_union(*graphs)
    colours = ref.wl_colours([sorted(both[v]) for v in range(len(both))], [0] * len(both), 10)
    half = len(both) // 2
    assert sorted(colours[:half]) == sorted(colours[half:])


@pytest.mark.parametrize("multiset", ["neighbourhood", "open-neighbourhood", "pairs", Paths(1), Hops(1)], ids=str)
@pytest.mark.parametrize("pair", PAIRS)
def test_neighbourhoods_and_pairs_see_no_difference(pair, multiset):
    assert gap(pair, multiset) < ALIKE


@pytest.mark.parametrize(
    ("pair", "seen"), [("triangles", True), ("decalin", False), ("circulant", True), ("rook", False)]
)
def test_local_columns_count_triangles(pair, seen):
    """Neither ten-node graph has one, and the nodes of both strongly regular ones are in six each."""
    difference = gap(pair, "neighbourhood", structure="local")
    assert difference > APART if seen else difference < ALIKE


# What sees which pair, and what does not. A triangle has no path of three edges; a ring of five has none of five.
SEEN = [
    ("triangles", Paths(2), False),
    ("triangles", Paths(3), True),
    ("triangles", Hops(2), True),
    ("triangles", Tuples(2, 1), True),
    ("triangles", Tuples(2, 2), True),
    ("triangles", Tuples(3, 1), True),
    ("decalin", Paths(3), False),
    ("decalin", Paths(5), True),
    ("decalin", Hops(2), False),
    ("decalin", Tuples(2, 1), False),
    ("decalin", Tuples(2, 2), True),
    ("decalin", Tuples(3, 1), False),
    ("decalin", Tuples(3, 2), True),
    ("circulant", Paths(3), True),
    ("circulant", Tuples(2, 1), True),
    ("circulant", Tuples(2, 2), True),
    ("rook", Paths(3, max_paths=None), False),
    ("rook", Hops(2), False),
    ("rook", Tuples(2, 1), False),
    ("rook", Tuples(2, 2), False),
    ("rook", Tuples(3, 1), True),
]


@pytest.mark.parametrize(("pair", "multiset", "seen"), SEEN, ids=str)
def test_larger_subgraphs_tell_graphs_apart_that_neighbourhoods_do_not(pair, multiset, seen):
    if seen:
        assert gap(pair, multiset) > APART
    else:
        assert gap(pair, multiset) < ALIKE


# --- the local refinement of tuples ---------------------------------------------------------------------


def tuple_blocks(adjacency, labels, k, s, n_layers):
    """ψ_0 … ψ_T of every tuple."""
    layers = {"walk": None, "structure": None, "family": GaussianMixture(variance=1.0)}
    model = FisherEmbedding(n_layers, 4, 64, normalize=False, counts=True, n_jobs=1, **layers)
    tuples = node_tuples(as_graph(sp.csr_array(adjacency)), k, s)
    points = tuples.features(np.eye(2)[labels])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "asked for")
        streams = [np.random.default_rng(seed) for seed in np.random.SeedSequence(0).spawn(n_layers + 1)]
        out = []
        for stage in Pass(model.settings(), points, tuples.sets, Run(n_jobs=1), streams=streams).stages():
            block = np.empty((tuples.sets.n_sets, stage.blocks.kernel_map.n_outputs))
            stage.run(Run(n_jobs=1), block.__setitem__)
            out.append(block)
    return out


@pytest.mark.parametrize(("k", "s"), [(2, 1), (2, 2), (3, 1)])
@settings(max_examples=20, deadline=None)
@given(st.integers(2, 5), st.floats(0.1, 0.9), st.booleans(), st.integers(0, 2**32 - 1))
def test_each_layer_separates_exactly_what_the_local_refinement_separates(k, s, n, density, directed, seed):
    rng = np.random.default_rng(seed)
    adjacency = (rng.random((n, n)) < density).astype(float)
    np.fill_diagonal(adjacency, 0)
    if not directed:
        adjacency = np.triu(adjacency) + np.triu(adjacency).T
    labels = rng.integers(2, size=n)
    _, colours = slow.local_wl_colours(adjacency, labels.tolist(), k, s, 2)
    for block, colour in zip(tuple_blocks(adjacency, labels, k, s, 2), colours, strict=True):
        gaps, alike = np.abs(block[:, None] - block[None]).max(axis=-1), np.equal.outer(colour, colour)
        assert gaps[alike].max() < ALIKE
        assert gaps[~alike].min(initial=np.inf) > 1e-7
