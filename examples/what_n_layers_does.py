"""
What n_layers does
==================

A layer sees the neighbours of a node. The next layer sees what their first layer saw, and so on: with `n_layers=T` a
node knows its surroundings up to T steps. Here the features of one node of a grid change, and the picture shows which
rows of the embedding change with it.
"""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

from fishergraph import FisherEmbedding

side = 15
graph = nx.grid_2d_graph(side, side)
middle = side * side // 2
rng = np.random.default_rng(0)
X = rng.normal(size=(side * side, 8))
changed = X.copy()
changed[middle] = rng.normal(size=8)

# %%
# Only the layers, without averages over the whole graph. Neighbourhoods are closed: a node is a member of its own.

figure, axes = plt.subplots(1, 5, figsize=(13, 3), layout="constrained")
for ax, n_layers in zip(axes, range(5), strict=True):
    model = FisherEmbedding(n_layers, dim=32, walk=None, structure=None, random_state=0).fit(X, graph=graph)
    moved = np.linalg.norm(model.transform(changed, graph=graph) - model.transform(X, graph=graph), axis=1)
    reached = moved.reshape(side, side) > 1e-6
    moved = np.log10(moved.reshape(side, side) + 1e-9)
    ax.imshow(np.where(reached, moved, np.nan), cmap="viridis", vmin=-3, vmax=0.5)
    ax.set(title=f"n_layers={n_layers}: {reached.sum()} nodes", xticks=[], yticks=[])
plt.show()

# %%
# More layers cost more columns, and far nodes change less and less. Two are the default, because the blocks "walk" and
# "smooth" see the whole graph.

for n_layers in (0, 2, 4):
    model = FisherEmbedding(n_layers, dim=32, random_state=0).fit(X, graph=graph)
    print(n_layers, model.blocks_)
