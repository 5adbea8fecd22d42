"""
Whole graphs
============

One vector for each graph: graphs that grew by different rules lie apart, though all of them have nearly as many nodes
and edges.
"""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
from sklearn.decomposition import PCA
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from fishergraph import FisherGraphEmbedding
from fishergraph.plots import PALETTE

rng = np.random.default_rng(0)
rules = {
    "random": lambda n, seed: nx.gnm_random_graph(n, 2 * n, seed=seed),
    "preferential": lambda n, seed: nx.barabasi_albert_graph(n, 2, seed=seed),
    "small world": lambda n, seed: nx.watts_strogatz_graph(n, 4, 0.1, seed=seed),
    "regular": lambda n, seed: nx.random_regular_graph(4, n, seed=seed),
}
labels = np.repeat(np.arange(4), 40)
graphs = [list(rules.values())[label](int(rng.integers(30, 60)), seed) for seed, label in enumerate(labels)]

# %%
# The graphs have no features. Degrees take their place.

Z = FisherGraphEmbedding(random_state=0).fit_transform(graphs)
classifier = make_pipeline(StandardScaler(with_std=False), SVC(C=10))
print(Z.shape, f"support vector machine: {cross_val_score(classifier, Z, labels, cv=5).mean():.0%}")

figure, ax = plt.subplots(figsize=(6, 4.5), layout="constrained")
plane = PCA(2).fit_transform(Z)
for label, rule in enumerate(rules):
    ax.plot(*plane[labels == label].T, "o", color=PALETTE[label], markersize=5, label=rule)
ax.set(xticks=[], yticks=[], title="160 graphs")
ax.legend(frameon=False)
plt.show()
