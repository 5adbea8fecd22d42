"""
Few labels: GraphProbe
======================

How many labels does a classifier need on top of the embedding? `GraphProbe` mixes several kinds of classifiers, also
such that learn from their own predictions on the other nodes; `LogisticProbe` is a linear model.
"""

import matplotlib.pyplot as plt
import numpy as np

from fishergraph import FisherEmbedding, GraphProbe, LogisticProbe, load_graph

cora = load_graph("cora")
model = FisherEmbedding(random_state=0)
Z = model.fit_transform(cora.X, graph=cora.graph)
others = np.setdiff1d(np.arange(cora.n_nodes), cora.test)

# %%
# Training papers are drawn anew for every number and turn. 300 papers with labels choose the settings of both, and the
# accuracy is that on the rest; the public test set is left alone.

numbers, turns = [1, 3, 10, 20], 3
scores = {"GraphProbe": np.zeros((len(numbers), turns)), "LogisticProbe": np.zeros((len(numbers), turns))}
for row, number in enumerate(numbers):
    for turn in range(turns):
        rng = np.random.default_rng(turn)
        val, pool = np.split(rng.permutation(others), [300])
        train = np.concatenate([pool[cora.y[pool] == k][:number] for k in range(cora.n_classes)])
        rest = np.setdiff1d(pool, train)
        graph_probe = GraphProbe(cora.graph, blocks=model.get_feature_names_out(), random_state=0)
        graph_probe.fit(Z, cora.y, train=train, val=val)
        scores["GraphProbe"][row, turn] = np.mean(graph_probe.predict()[rest] == cora.y[rest])
        linear = LogisticProbe(Cs=[0.1, 1, 10, 100]).fit(Z, cora.y, train=train, val=val)
        scores["LogisticProbe"][row, turn] = linear.score(Z[rest], cora.y[rest])

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for name, values in scores.items():
    ax.plot(numbers, 100 * values.mean(axis=1), "o-", label=name)
    ax.fill_between(numbers, 100 * values.min(axis=1), 100 * values.max(axis=1), alpha=0.2)
ax.set(xscale="log", xlabel="labels per class for training", ylabel="accuracy, %")
ax.set_xticks(numbers, [str(number) for number in numbers])
ax.legend(frameon=False)
plt.show()

# %%
# What was mixed in the last fit:

print(graph_probe.chosen_)
