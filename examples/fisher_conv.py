"""
FisherConv where GATConv was
============================

A network of PyTorch Geometric with two layers of attention. The only lines that differ between the two networks are
those that make the layers.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch.nn import functional
from torch_geometric.nn import GATConv

from fishergraph import FisherEmbedding, load_graph
from fishergraph.nn import FisherConv

cora = load_graph("cora")
# The words by 128 principal axes, so that this page is built in seconds.
axes = FisherEmbedding(0, dim=128, walk=None, structure=None, random_state=0).fit_transform(cora.X, graph=cora.graph)
x, y = torch.tensor(np.asarray(axes), dtype=torch.float32), torch.tensor(cora.y)
edge_index = torch.tensor(np.array(cora.graph.nonzero()))
train, val = torch.tensor(cora.train), torch.tensor(cora.val)


class Network(torch.nn.Module):
    """Two layers, whichever they are."""

    def __init__(self, first: torch.nn.Module, second: torch.nn.Module):
        super().__init__()
        self.first, self.second = first, second

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        x = functional.elu(self.first(functional.dropout(x, 0.5, self.training), edge_index))
        return self.second(functional.dropout(x, 0.5, self.training), edge_index)


torch.manual_seed(0)
networks = {
    "GATConv": Network(GATConv(128, 16, heads=4), GATConv(64, cora.n_classes, heads=1)),
    "FisherConv": Network(FisherConv(128, 64, num_anchors=4), FisherConv(64, cora.n_classes, num_anchors=4)),
}

# %%
# An ordinary training loop.

curves: dict[str, list[float]] = {}
for name, network in networks.items():
    optimiser = torch.optim.Adam(network.parameters(), lr=0.005, weight_decay=5e-4)
    curves[name] = []
    for _ in range(60):
        network.train()
        optimiser.zero_grad()
        functional.cross_entropy(network(x, edge_index)[train], y[train]).backward()
        optimiser.step()
        network.eval()
        with torch.no_grad():
            right = network(x, edge_index)[val].argmax(dim=1) == y[val]
        curves[name].append(100 * right.double().mean().item())

figure, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
for name, curve in curves.items():
    ax.plot(range(1, len(curve) + 1), curve, label=name)
ax.set(xlabel="epoch", ylabel="accuracy on validation papers, %")
ax.legend(frameon=False)
plt.show()

# %%
# The attention that each paper pays to its neighbours, for every anchor: the columns sum to one over a neighbourhood.

with torch.no_grad():
    _, (entries, attention) = networks["FisherConv"].first(x, edge_index, return_attention_weights=True)
print(entries.shape, attention.shape)
