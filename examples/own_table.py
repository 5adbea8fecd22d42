"""
Your own tables
===============

Two tables: who referred whom to a shop, and what is known of each customer. The ids are texts, the rows are in any
order, and some customers have no referral at all. `fishergraph embed referrals.csv --nodes customers.csv` does the
same.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.decomposition import PCA

from fishergraph import FisherEmbedding
from fishergraph.plots import PALETTE

rng = np.random.default_rng(0)
town = rng.integers(4, size=600)  # hidden in the columns
noise = rng.normal(size=(600, 4))
habits = rng.normal(size=(4, 4))[town] + 1.5 * noise
customers = pd.DataFrame(
    {
        "age": 45 + 5 * habits[:, 0],
        "spend": 20 * np.exp(habits[:, 1] / 2),
        "visits": 9 + 2 * habits[:, 2],
        "km": habits[:, 3] ** 2,
    },
    index=[f"c{number:03}" for number in rng.permutation(600)],
)
pairs = rng.integers(600, size=(8000, 2))
same = town[pairs[:, 0]] == town[pairs[:, 1]]
pairs = pairs[(rng.random(8000) < np.where(same, 0.9, 0.05)) & (pairs.max(axis=1) < 590)]  # ten customers know nobody
referrals = pd.DataFrame(customers.index.to_numpy()[pairs], columns=["source", "target"])
print(referrals.head(3), customers.head(3), sep="\n")

# %%
# The index of the table of nodes names its rows, so the order of the tables does not matter. Columns of money and of
# years are put on one scale first. A referral counts both ways here.

X = (customers - customers.mean()) / customers.std()
model = FisherEmbedding(multiset="neighbourhood", random_state=0).set_params(multiset__undirected=True)
Z = model.fit_transform(X, graph=referrals)
print(Z.shape)

# %%
# The columns alone do not show the towns. The embedding does.

figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for ax, values, title in zip(axes, [X, Z], ["the table of customers", "the embedding"], strict=True):
    plane = PCA(2).fit_transform(values)
    ax.scatter(*plane.T, c=np.array(PALETTE)[town], s=10)
    ax.set(title=title, xticks=[], yticks=[])
plt.show()
