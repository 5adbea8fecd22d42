"""
Structure beside features that say nothing
==========================================

Six communities of 80 nodes, and features that are noise. `FisherEmbedding` does not know that they are; a weight for
the blocks of structure does, and so does a classifier that weighs blocks itself.
"""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression

from fishergraph import FisherEmbedding
from fishergraph.plots import PALETTE

rng = np.random.default_rng(0)
sizes = [80] * 6
graph = nx.to_scipy_sparse_array(nx.stochastic_block_model(sizes, np.where(np.eye(6), 0.08, 0.01), seed=1))
y = np.repeat(np.arange(6), sizes)
noise = rng.normal(size=(len(y), 4))
train = np.concatenate([rng.choice(np.flatnonzero(y == k), 20, replace=False) for k in range(6)])
test = np.setdiff1d(np.arange(len(y)), train)

# %%
# The default gives structure the weight 0.1. That is enough for a linear model, which finds the columns that help, and
# too little for a picture. `structure=None` sees noise alone.

settings = {
    "structure=None": {"structure": None},
    "default, weight 0.1": {},
    "factors alone": {
        "block_weights": {**dict.fromkeys(["psi0", "psi1", "psi2", "walk", "smooth", "local"], 0), "factors": 1}
    },
    "X=None": {},
}
figure, axes = plt.subplots(1, 4, figsize=(13, 3.5), layout="constrained")
scores = {}
for ax, (name, parameters) in zip(axes, settings.items(), strict=True):
    model = FisherEmbedding(dim=64, random_state=0, **parameters)
    Z = model.fit_transform(None if name == "X=None" else noise, graph=graph)
    linear = LogisticRegression(C=100, max_iter=2000).fit(Z[train], y[train])
    scores[name] = linear.score(Z[test], y[test])
    ax.scatter(*PCA(2).fit_transform(Z).T, c=np.array(PALETTE)[y], s=8)
    ax.set(title=f"{name}\nlogistic regression: {scores[name]:.0%}", xticks=[], yticks=[])
plt.show()

# %%
# Without labels nobody can tell which block is noise. If the features may say nothing, leave them out.
