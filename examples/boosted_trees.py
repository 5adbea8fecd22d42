"""
A table for boosted trees
=========================

Boosted trees take tables, not graphs. `to_table` writes what a graph says of its nodes as columns with names: means
over the neighbours and by PageRank, counts of the edges, and the labels of neighbours that train. A row never has its
own label.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split

from fishergraph import load_graph, to_table

cora = load_graph("cora")
topics = TruncatedSVD(12, random_state=0).fit_transform(cora.X)  # twelve columns of numbers for every paper
train, test = train_test_split(np.arange(len(cora.y)), train_size=0.3, stratify=cora.y, random_state=0)

# %%
# The table has the papers' own columns, and those that the citations add.

table = to_table(topics, cora.graph, names=[f"topic {k}" for k in range(12)], y=cora.y.astype(str), train=train)
print(table.iloc[:3, 12:20])


# %%
# The same trees on the own columns, on the table without labels, and on all of it.

own = [name for name in table if name.startswith("topic") and not name.endswith(("neighbours", "pagerank"))]
unlabelled = [name for name in table if not name.startswith("label")]
scores = {}
for kind, columns in {"own columns": own, "with the graph": unlabelled, "and labels": list(table)}.items():
    trees = HistGradientBoostingClassifier(max_iter=40, random_state=0).fit(table[columns].iloc[train], cora.y[train])
    scores[kind] = trees.score(table[columns].iloc[test], cora.y[test])

figure, ax = plt.subplots(figsize=(6, 2.4), layout="constrained")
bars = ax.barh(list(scores), [100 * score for score in scores.values()])
ax.bar_label(bars, fmt="%.1f", padding=3)
ax.set(xlabel="accuracy on other papers, %", xlim=(0, 100))
plt.show()
