"""
Larger than memory: a store
===========================

A store keeps a graph in files, and an embedding of it reads them a part at a time. This one is small, so that the
result can be compared: it has the bits of a run in memory.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from fishergraph import FisherEmbedding, load_graph
from fishergraph.scale import GraphSize, Store, plan, write_store

cora = load_graph("cora")
folder = Path(tempfile.mkdtemp()) / "cora.store"
write_store(folder, cora.graph, cora.X)
model = FisherEmbedding(dim=64, random_state=0)
stored = model.fit_transform(Store(folder, memory="2G"))
print(stored)
print(sorted(file.name for file in (folder / "embeddings" / "default").iterdir()))

# %%
# The same numbers, to the last bit. `numpy.load` reads the blocks from the folder, too.

in_memory = FisherEmbedding(dim=64, random_state=0).fit_transform(cora.X, graph=cora.graph)
print(np.array_equal(np.asarray(stored), in_memory))

# %%
# What would a graph of ten million nodes take? `plan` counts and measures, before any of the work is done.

size = GraphSize(10_000_000, 200_000_000, 100)
planned = plan(size, FisherEmbedding(dim=128, structure=None), memory="16G")
print(planned)

# %%
# Memory of every stage, within the budget, and the files that stay.

stages = [stage for stage in planned.stages if stage.memory]
names = [stage.name for stage in stages]
figure, axes = plt.subplots(1, 2, figsize=(10, 3.2), layout="constrained", sharey=True)
axes[0].barh(names, [stage.memory / 1e9 for stage in stages], color="#0072B2")
axes[0].axvline(16, color="#D55E00", linestyle="--")
axes[0].set(xlabel="memory, GB (the line: the budget)")
axes[1].barh(names, [stage.kept / 1e9 for stage in stages], color="#009E73")
axes[1].set(xlabel="files that stay, GB")
axes[0].invert_yaxis()
plt.show()
