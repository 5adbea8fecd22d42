"""
New nodes without fitting again
===============================

A model is fitted to a part of Cora. Then 300 papers appear, with their words and citations, and `transform` embeds
them with the anchors and maps that it has.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA

from fishergraph import FisherEmbedding, LogisticProbe, as_graph, load_graph

cora = load_graph("cora")
graph = as_graph(cora.graph)
rng = np.random.default_rng(0)
late = rng.choice(np.setdiff1d(np.arange(cora.n_nodes), np.concatenate([cora.train, cora.val])), 300, replace=False)
early = np.setdiff1d(np.arange(cora.n_nodes), late)

# %%
# Fit on the papers of before, with the citations among them: rows of a `Graph` are a subgraph, which keeps the names of
# its nodes. A classifier learns from 140 labels.

model = FisherEmbedding(random_state=0)
Z_before = model.fit_transform(cora.X[early], graph=graph[early])
place = np.full(cora.n_nodes, -1)
place[early] = np.arange(len(early))
probe = LogisticProbe().fit(Z_before, cora.y[early], train=place[cora.train], val=place[cora.val])

# %%
# Then the whole graph, and nothing is learned anew.

Z = model.transform(cora.X, graph=graph)
print(f"papers that were there: {probe.score(Z[cora.test], cora.y[cora.test]):.3f} on the test papers, old and new")
print(f"new papers alone: {probe.score(Z[late], cora.y[late]):.3f}")

# %%
# The new papers lie among those of their topic.

plane = PCA(2).fit(Z_before).transform(Z)
figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained", sharex=True, sharey=True)
for ax, rows, title in zip(axes, [early, late], ["papers of the fit", "300 new papers"], strict=True):
    ax.scatter(*plane[rows].T, c=cora.y[rows], cmap="tab10", vmax=9, s=6)
    ax.set(title=title, xticks=[], yticks=[])
plt.show()
