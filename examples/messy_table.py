"""
A table as it is
================

Penguins as they were measured: words, dates, remarks, gaps, a column that is the same for all and one that is nearly an
id. Two penguins are joined if their eggs were laid on the same island on the same day. Nothing is prepared;
`fishergraph embed edges.csv --nodes penguins.csv --drop Species` does the same.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA

from fishergraph import FisherEmbedding
from fishergraph.datasets import load_tables
from fishergraph.plots import PALETTE

penguins = load_tables("penguins")
nodes, edges = penguins.nodes.to_pandas().set_index("id"), penguins.edges.to_pandas()
print(nodes.head(3).T)

# %%
# The species and the two columns that give it away, the island and the study, are left out. The model encodes the
# other columns, and says what it made of them. A warning names those that it left aside.

species, X = nodes["Species"], nodes.drop(columns=["Species", "Island", "studyName"])
model = FisherEmbedding(random_state=0).set_params(multiset__undirected=True)
Z = model.fit_transform(X, graph=edges)
print(model.encoder_.schema_)

# %%
# The embedding shows the species.

plane = PCA(2).fit_transform(Z)
kinds = np.unique(species)
figure, ax = plt.subplots(figsize=(6, 5), layout="constrained")
for kind, colour in zip(kinds, PALETTE, strict=False):
    ax.scatter(*plane[(species == kind).to_numpy()].T, color=colour, s=12, label=kind.partition(" (")[0])
ax.set(title="penguins, without their species", xticks=[], yticks=[])
ax.legend(frameon=False)
plt.show()
