"""
A NetworkX graph without features: the karate club
==================================================

34 members of a club, and who meets whom outside of it. The club broke in two; the embedding sees that coming from the
edges alone.
"""

import matplotlib.pyplot as plt
import networkx as nx
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA

from fishergraph import FisherEmbedding, as_graph

club = nx.karate_club_graph()
model = FisherEmbedding(dim=16, random_state=0)
Z = model.fit_transform(graph=as_graph(club))  # no X: columns from the edges take its place
print(Z.shape, model.blocks_)

# %%
# Row v belongs to the v-th node of `club.nodes`.

plane = PCA(2).fit_transform(Z)
guess = KMeans(2, n_init=10, random_state=0).fit_predict(Z)
side = [club.nodes[node]["club"] for node in club]

figure, ax = plt.subplots(figsize=(7, 5), layout="constrained")
position = dict(zip(club, plane, strict=True))
nx.draw_networkx_edges(club, position, edge_color="lightgrey", ax=ax)
colours = ["#0072B2" if name == "Mr. Hi" else "#E69F00" for name in side]
nx.draw_networkx_nodes(club, position, node_color=colours, node_size=260, ax=ax)
nx.draw_networkx_labels(club, position, font_size=8, font_color="white", ax=ax)
ax.set_title("the embedding in the plane; colours: whom they followed when the club broke")
ax.set_axis_off()
plt.show()

# %%
# Two clusters of the embedding against what happened:

first = side[0]
agree = sum((name == first) == (label == guess[0]) for name, label in zip(side, guess, strict=True))
print(f"{agree} of {len(side)} members are on the side that the clusters say")
