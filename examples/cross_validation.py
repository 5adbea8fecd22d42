"""
Cross-validation: transductive and inductive
============================================

Two questions, two ways to cut a graph. *Transductive*: all nodes are known, some labels are not. *Inductive*: the
nodes of the fold are not known either, when the model is fitted.
"""

import matplotlib.pyplot as plt
import sklearn
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline

from fishergraph import FisherEmbedding, as_graph, load_graph

cora = load_graph("cora")
graph = as_graph(cora.graph)  # a Graph, which cross-validation can cut on both sides
folds = StratifiedKFold(3, shuffle=True, random_state=0)
linear = RidgeClassifier()
embedding = FisherEmbedding(dim=128, structure="local", random_state=0)

# %%
# Transductive: embed once, without labels, and cross-validate the classifier. No label leaks, because the embedding has
# not seen one.

Z = embedding.fit_transform(cora.X, graph=graph)
scores = {"transductive": cross_val_score(linear, Z, cora.y, cv=folds)}

# %%
# Inductive: the embedding is a part of the pipeline, and the graph is cut with the folds. scikit-learn hands on `graph`
# to the step that requests it, once routing is switched on.

with sklearn.config_context(enable_metadata_routing=True):
    step = embedding.set_fit_request(graph=True).set_transform_request(graph=True)
    pipeline = make_pipeline(step, linear)
    scores["inductive, edges of the fold alone"] = cross_val_score(
        pipeline, cora.X, cora.y, cv=folds, params={"graph": graph}
    )

# %%
# The test nodes of a fold then have the edges among themselves alone. If new nodes come with edges to the old ones,
# embed the whole graph with the model of the training nodes.

scores["inductive, all edges"] = []
for train, test in folds.split(cora.X, cora.y):
    linear.fit(embedding.fit_transform(cora.X[train], graph=graph[train]), cora.y[train])
    scores["inductive, all edges"].append(linear.score(embedding.transform(cora.X, graph=graph)[test], cora.y[test]))

figure, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
for place, (name, values) in enumerate(scores.items()):
    ax.plot([100 * value for value in values], [place] * len(values), "o", label=name)
ax.set_yticks(range(len(scores)), list(scores))
ax.set(xlabel="accuracy of each fold, %", ylim=(-0.5, len(scores) - 0.5))
plt.show()
