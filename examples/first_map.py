"""
A first map: Cora
=================

2,708 papers, the words in them, and who cites whom. No label is used to make the map; the colours are added at the
end.
"""

import matplotlib.pyplot as plt
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE

from fishergraph import FisherEmbedding, load_graph
from fishergraph.plots import PALETTE

cora = load_graph("cora")  # comes with the package
print(cora)

# %%
# `fit_transform` gives one row for every node. The columns are blocks: the paper's own words, what its neighbours say
# (two layers), words averaged over the whole graph, and the structure of the graph.

model = FisherEmbedding(random_state=0)
Z = model.fit_transform(cora.X, graph=cora.graph)
print(Z.shape, model.blocks_)

# %%
# A map in the plane by t-SNE. Papers of one topic lie together, though nobody told the model what a topic is.

points = TSNE(max_iter=500, random_state=0).fit_transform(PCA(50, random_state=0).fit_transform(Z))
figure, ax = plt.subplots(figsize=(9, 5.5), layout="constrained")
for topic, name in enumerate(cora.class_names):
    ax.plot(*points[cora.y == topic].T, ".", color=PALETTE[topic], markersize=4, label=name)
ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5), markerscale=3)
ax.set_axis_off()
plt.show()
