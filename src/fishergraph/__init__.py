"""fishergraph: embeddings of nodes, graphs and multisets with the geometry of a statistical manifold.

    multisets → EM at the anchors → whitened tangent vector φ → kernel map ψ, stacked T times.

The packages, in the order of that sentence (docs/map.md):

    tables             tables with words, dates and gaps → rows of numbers: TableEncoder
    graph, graphs      graphs of any library → compressed sparse rows and node ids
    diffusion          PageRank, heat, averages of steps, by push
    multiset       1   which points belong to which set
    family         2   the statistical manifold
    em, ops        3   project a multiset onto the manifold: em_means, and the engines under it
    embedding      4   φ, and the tangent kernel
    bounds             theorems as numbers: margin_bound, lipschitz_constant
    kernel_map     5   ψ, the Nyström map
    layer, stack   6   one layer by row blocks, the stages of a pass
    nn             7   PyTorch Geometric: FisherConv, FisherNet, training
    probes         7   classifiers of embeddings: LogisticProbe, GraphProbe
    exchange       7   attributes of nodes as a table, results as a graph: node_table, to_networkx, to_pyg
    estimators     7   scikit-learn: FisherEmbedding, FisherSetEmbedding, FisherGraphEmbedding, FisherClassifier
    auto           7   settings chosen on labels: auto_embed
    kernels        7   Gram matrices: node_kernel, set_kernel, graph_kernel
    explain        7   why two nodes are alike, and which are odd: Explainer
    explore        7   a page of an embedding to click through and to send: explore
    datasets       8   graphs to begin with

Names are imported when they are first used, so `import fishergraph` is quick and loads neither numba nor torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fishergraph._version import __version__

_HOMES = {
    "Neighbourhood": "fishergraph.multiset",
    "Readout": "fishergraph.estimators",
    "Structure": "fishergraph.structural",
    "TableEncoder": "fishergraph.tables",
    "Walk": "fishergraph.walk",
    "Nystrom": "fishergraph.kernel_map",
    "EM": "fishergraph.em",
    "DiagonalMixture": "fishergraph.family",
    "Differences": "fishergraph.multiset",
    "Explainer": "fishergraph.explain",
    "FisherClassifier": "fishergraph.estimators",
    "FisherEmbedding": "fishergraph.estimators",
    "FisherGraphEmbedding": "fishergraph.estimators",
    "FisherSetEmbedding": "fishergraph.estimators",
    "group_sets": "fishergraph.estimators",
    "to_table": "fishergraph.tabular",
    "Gaussian": "fishergraph.family",
    "GaussianMixture": "fishergraph.family",
    "Graph": "fishergraph.graph",
    "GraphProbe": "fishergraph.probes",
    "Graphs": "fishergraph.graphs",
    "HeatKernel": "fishergraph.multiset",
    "Hops": "fishergraph.multiset",
    "LiftedSets": "fishergraph.multiset",
    "LinkProbe": "fishergraph.probes",
    "LogisticProbe": "fishergraph.probes",
    "MultinomialMixture": "fishergraph.family",
    "Multisets": "fishergraph.multiset",
    "PageRank": "fishergraph.multiset",
    "Pairs": "fishergraph.multiset",
    "Paths": "fishergraph.multiset",
    "Relations": "fishergraph.graphs",
    "StepAverage": "fishergraph.multiset",
    "Tuples": "fishergraph.multiset",
    "Vectors": "fishergraph.vectors",
    "VonMisesFisherMixture": "fishergraph.family",
    "as_graph": "fishergraph.graph",
    "as_graphs": "fishergraph.graphs",
    "as_relations": "fishergraph.graphs",
    "auto_embed": "fishergraph.auto",
    "config_context": "fishergraph.config",
    "em_estimate": "fishergraph.em",
    "em_means": "fishergraph.em",
    "fisher_embedding": "fishergraph.embedding",
    "kl_divergence": "fishergraph.family",
    "get_config": "fishergraph.config",
    "graph_kernel": "fishergraph.kernels",
    "learn_anchors": "fishergraph.em",
    "learn_family": "fishergraph.em",
    "lipschitz_constant": "fishergraph.bounds",
    "load_graph": "fishergraph.datasets",
    "load_graphs": "fishergraph.datasets",
    "margin_bound": "fishergraph.bounds",
    "neighbourhoods": "fishergraph.multiset",
    "node_kernel": "fishergraph.kernels",
    "node_sets": "fishergraph.multiset",
    "node_table": "fishergraph.exchange",
    "node_tuples": "fishergraph.multiset",
    "retract": "fishergraph.family",
    "set_config": "fishergraph.config",
    "set_kernel": "fishergraph.kernels",
    "set_lipschitz_constant": "fishergraph.bounds",
    "split_edges": "fishergraph.probes",
    "structural_features": "fishergraph.structural",
    "suggest_links": "fishergraph.vectors",
    "tangent_kernel": "fishergraph.embedding",
    "to_networkx": "fishergraph.exchange",
    "to_pyg": "fishergraph.exchange",
}

__all__ = ["__version__", *_HOMES]  # pyright: ignore

if TYPE_CHECKING:
    from fishergraph.auto import auto_embed as auto_embed
    from fishergraph.bounds import lipschitz_constant as lipschitz_constant
    from fishergraph.bounds import margin_bound as margin_bound
    from fishergraph.bounds import set_lipschitz_constant as set_lipschitz_constant
    from fishergraph.config import config_context as config_context
    from fishergraph.config import get_config as get_config
    from fishergraph.config import set_config as set_config
    from fishergraph.datasets import load_graph as load_graph
    from fishergraph.datasets import load_graphs as load_graphs
    from fishergraph.em import EM as EM
    from fishergraph.em import em_estimate as em_estimate
    from fishergraph.em import em_means as em_means
    from fishergraph.em import learn_anchors as learn_anchors
    from fishergraph.em import learn_family as learn_family
    from fishergraph.embedding import fisher_embedding as fisher_embedding
    from fishergraph.embedding import tangent_kernel as tangent_kernel
    from fishergraph.estimators import FisherClassifier as FisherClassifier
    from fishergraph.estimators import FisherEmbedding as FisherEmbedding
    from fishergraph.estimators import FisherGraphEmbedding as FisherGraphEmbedding
    from fishergraph.estimators import FisherSetEmbedding as FisherSetEmbedding
    from fishergraph.estimators import Readout as Readout
    from fishergraph.estimators import group_sets as group_sets
    from fishergraph.exchange import node_table as node_table
    from fishergraph.exchange import to_networkx as to_networkx
    from fishergraph.exchange import to_pyg as to_pyg
    from fishergraph.explain import Explainer as Explainer
    from fishergraph.family import DiagonalMixture as DiagonalMixture
    from fishergraph.family import Gaussian as Gaussian
    from fishergraph.family import GaussianMixture as GaussianMixture
    from fishergraph.family import MultinomialMixture as MultinomialMixture
    from fishergraph.family import VonMisesFisherMixture as VonMisesFisherMixture
    from fishergraph.family import kl_divergence as kl_divergence
    from fishergraph.family import retract as retract
    from fishergraph.graph import Graph as Graph
    from fishergraph.graph import as_graph as as_graph
    from fishergraph.graphs import Graphs as Graphs
    from fishergraph.graphs import Relations as Relations
    from fishergraph.graphs import as_graphs as as_graphs
    from fishergraph.graphs import as_relations as as_relations
    from fishergraph.kernel_map import Nystrom as Nystrom
    from fishergraph.kernels import graph_kernel as graph_kernel
    from fishergraph.kernels import node_kernel as node_kernel
    from fishergraph.kernels import set_kernel as set_kernel
    from fishergraph.multiset import Differences as Differences
    from fishergraph.multiset import HeatKernel as HeatKernel
    from fishergraph.multiset import Hops as Hops
    from fishergraph.multiset import LiftedSets as LiftedSets
    from fishergraph.multiset import Multisets as Multisets
    from fishergraph.multiset import Neighbourhood as Neighbourhood
    from fishergraph.multiset import PageRank as PageRank
    from fishergraph.multiset import Pairs as Pairs
    from fishergraph.multiset import Paths as Paths
    from fishergraph.multiset import StepAverage as StepAverage
    from fishergraph.multiset import Tuples as Tuples
    from fishergraph.multiset import neighbourhoods as neighbourhoods
    from fishergraph.multiset import node_sets as node_sets
    from fishergraph.multiset import node_tuples as node_tuples
    from fishergraph.probes import GraphProbe as GraphProbe
    from fishergraph.probes import LinkProbe as LinkProbe
    from fishergraph.probes import LogisticProbe as LogisticProbe
    from fishergraph.probes import split_edges as split_edges
    from fishergraph.structural import Structure as Structure
    from fishergraph.structural import structural_features as structural_features
    from fishergraph.tables import TableEncoder as TableEncoder
    from fishergraph.tabular import to_table as to_table
    from fishergraph.vectors import Vectors as Vectors
    from fishergraph.vectors import suggest_links as suggest_links
    from fishergraph.walk import Walk as Walk


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'fishergraph' has no attribute {name!r}; it has {', '.join(_HOMES)}")


def __dir__() -> list[str]:
    return sorted(["__version__", *_HOMES])
