"""
Links: citations that are missing
=================================

A tenth of Cora's citations is held out. How well are they told from random pairs of papers, and what happens if the
embedding has seen them?
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_curve

from fishergraph import FisherEmbedding, LinkProbe, Vectors, split_edges, suggest_links
from fishergraph.datasets import load_graph
from fishergraph.plots import PALETTE
from fishergraph.probes import link_metrics

cora = load_graph("cora")
model = FisherEmbedding(dim=64, random_state=0)
split = split_edges(cora.graph, random_state=0)
print(split.graph, split.test)

# %%
# `LinkProbe` embeds the graph without the edges that are held out, and learns what edges look like that the embedding
# has not seen.

probe = LinkProbe(model, n_folds=3, random_state=0).fit(cora.X, split)
print(probe.evaluate(split.test), probe.head_)

# %%
# For comparison: the words of two papers alone, the similarity of the same embedding, and that of an embedding of the
# whole graph, which has averaged over the edges that it should predict. The last one looks good and means nothing.

scores = {
    "LinkProbe": probe.decision_function(split.test),
    "similarity": Vectors(probe.vectors_).link_scores(split.test),
    "words alone": Vectors(cora.X.toarray()).link_scores(split.test),
    "similarity, edges were seen": Vectors(model.fit_transform(cora.X, graph=cora.graph)).link_scores(split.test),
}
areas = {name: link_metrics(values, split.test.edges)["auc"] for name, values in scores.items()}

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
chance = probe.predict_proba(split.test)[:, 1]
for edges, text, colour in ((True, "citations held out", PALETTE[0]), (False, "random pairs", PALETTE[1])):
    left.hist(chance[split.test.edges == edges], bins=np.linspace(0, 1, 26), alpha=0.6, color=colour, label=text)
left.set(xlabel="probability of LinkProbe", ylabel="pairs", yscale="log", title="Does one paper cite the other?")
left.legend()
for (name, values), colour in zip(scores.items(), PALETTE, strict=False):
    wrong, right_ones, _ = roc_curve(split.test.edges, values)
    style = "--" if name.endswith("seen") else "-"
    right.plot(wrong, right_ones, style, color=colour, label=f"{name}: {areas[name]:.3f}")
right.set(xlabel="share of random pairs", ylabel="share of citations", title="ROC curves and the areas under them")
right.legend(loc="lower right")

# %%
# Then the probe gets the whole graph, and says which citations may be missing.

new = suggest_links(probe.use(cora.X, cora.graph), k=5)
for source, target, probability in zip(new.source, new.target, new.probability, strict=True):
    print(cora.ids[source], cora.ids[target], f"{probability:.3f}", cora.class_names[cora.y[source]])
plt.show()
