"""
Planes, airports and airlines
=============================

Three types of nodes and three kinds of edges: planes fly to airports, belong to airlines, and airlines serve airports.
Of a plane only its year is known, of an airport its position, of an airline nothing. Who made a plane is not among the
features; the picture shows how much of it the relations tell.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.decomposition import PCA

from fishergraph import FisherEmbedding, Neighbourhood, as_relations
from fishergraph.datasets import load_tables
from fishergraph.plots import PALETTE

flights = load_tables("flights")
tables = {name: table.to_pandas().set_index("id") for name, table in flights.nodes.items()}
relations = as_relations(flights.edges, nodes={name: table.index for name, table in tables.items()})
print(relations)

# %%
# Features are numbers: decades of planes, and thirds of the positions of airports. Airlines have none, and get columns
# of their edges. `undirected=True` adds the reverse of every relation, so that airports hear of planes too.

decades = pd.get_dummies(tables["planes"].year // 10, dummy_na=True).astype(np.float32)
thirds = [pd.get_dummies(pd.qcut(tables["airports"][name], 3, labels=False), dummy_na=True) for name in ("lat", "lon")]
X = {"planes": decades.to_numpy(), "airports": np.hstack(thirds).astype(np.float32)}
model = FisherEmbedding(dim=64, multiset=Neighbourhood(undirected=True), random_state=0)
Z = model.fit_transform(X, graph=relations)
print({name: rows.shape for name, rows in Z.items()})

# %%
# Every relation has columns of its own. Those of "flown_by" group planes by airline, those of "flies_to" by airports.
# Together they show the makers.

makers = tables["planes"].manufacturer.fillna("").str.split().str[0].to_numpy()
known = ["BOEING", "AIRBUS", "BOMBARDIER", "EMBRAER", "MCDONNELL"]

views = {"decades": X["planes"], "all blocks": Z["planes"]}
figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for ax, (title, rows) in zip(axes, views.items(), strict=True):
    plane = PCA(2, random_state=0).fit_transform(rows)
    for maker, colour in zip(known, PALETTE, strict=False):
        ax.scatter(*plane[makers == maker].T, color=colour, s=6, label=maker.title())
    ax.set(title=title, xticks=[], yticks=[])
axes[1].legend(markerscale=2, fontsize="small")
plt.show()
