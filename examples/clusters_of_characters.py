"""
Clusters: Les Misérables
========================

77 characters, and how often two of them are on a stage together. Clusters of the embedding are the circles of the
novel.
"""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from fishergraph import FisherEmbedding
from fishergraph.plots import PALETTE

novel = nx.les_miserables_graph()  # the weight of an edge: common scenes
names = list(novel)
model = FisherEmbedding(dim=32, structure="factors", random_state=0)
Z = model.fit_transform(graph=novel)
print(Z.shape, model.blocks_)

# %%
# k-means on the embedding, and the characters with the most scenes of every cluster.

cluster = KMeans(6, n_init=20, random_state=0).fit_predict(Z)
scenes = dict(novel.degree(weight="weight"))
for number in range(6):
    members = sorted((name for name, one in zip(names, cluster, strict=True) if one == number), key=scenes.get)
    print(number, len(members), ", ".join(members[:-5:-1]))

# %%
# The communities that modularity finds in the same graph, for comparison.

found = nx.community.greedy_modularity_communities(novel, weight="weight")
community = [next(number for number, group in enumerate(found) if name in group) for name in names]
print(f"adjusted Rand index {adjusted_rand_score(community, cluster):.2f}, {len(found)} communities")

figure, axes = plt.subplots(1, 2, figsize=(11, 5.5), layout="constrained")
position = nx.spring_layout(novel, seed=1, k=0.35)
for ax, groups, title in zip(axes, [cluster, community], ["clusters of the embedding", "modularity"], strict=True):
    nx.draw_networkx_edges(novel, position, edge_color="lightgrey", ax=ax)
    sizes = [8 + scenes[name] for name in names]
    colours = [PALETTE[number % len(PALETTE)] for number in np.asarray(groups)]
    nx.draw_networkx_nodes(novel, position, node_color=colours, node_size=sizes, ax=ax)
    known = ["Valjean", "Marius", "Fantine", "Myriel", "Thenardier", "Gavroche"]
    nx.draw_networkx_labels(novel, position, {name: name for name in known}, font_size=9, ax=ax)
    ax.set_title(title)
    ax.set_axis_off()
plt.show()
