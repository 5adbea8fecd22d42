"""Answers of an embedding: nearest nodes, similarities of pairs, clusters.

vectors       Vectors: an embedding with the ids of its rows
results       Neighbours, what a search returns; clusters: Clusters
points        rows as a search reads them, metrics, and the spaces in which rows are compared
distinct      groups of equal rows, which are searched once
search        the exact search by blocks; approximate: that of pynndescent
pairs         similarities of pairs
clustering    k-means, and how many clusters there are
naming        the columns that set clusters apart; columns: columns of any type as numbers
suggest       suggest_links: the most probable links that do not exist yet
kernels       the compiled loops of all of them
"""

from fishergraph.vectors.clusters import Clusters
from fishergraph.vectors.naming import Trait
from fishergraph.vectors.results import Neighbours
from fishergraph.vectors.suggest import SuggestedLinks, suggest_links
from fishergraph.vectors.vectors import Vectors

__all__ = ["Clusters", "Neighbours", "SuggestedLinks", "Trait", "Vectors", "suggest_links"]
