"""PyTorch Geometric: layers, models and training (the extra `torch`).

channels     widths that the first input decides
edges        edge_index → multisets, kept for as long as the edges live
mixture      anchors as parameters, EM from them, φ; families and charts: the same for other families
heads        ψ: NystromHead, and the linear and ReLU heads
projection   wide rows before EM
lifted       members made of several rows, by row blocks
aggr, conv   FisherAggregation, FisherConv
rows         rows of x, dense or sparse
models       FisherNet: the stack; inference runs it layer by layer
loader       neighbourhoods of mini-batches; loader_source: what they are cut from
stored       graphs whose rows are read from files
inference    all nodes, layer by layer
training     train, on a task, in batches; loop, checkpoint and history
node_network the network of FisherClassifier, with its settings
"""

from fishergraph._optional import require

require("torch", extra="torch")
require("torch_geometric", extra="torch")

from fishergraph.nn.aggr import FisherAggregation  # noqa: E402
from fishergraph.nn.conv import FisherConv  # noqa: E402
from fishergraph.nn.heads import LinearMap, NystromHead  # noqa: E402
from fishergraph.nn.history import History  # noqa: E402
from fishergraph.nn.mixture import WeightedMixture  # noqa: E402
from fishergraph.nn.models import FisherNet  # noqa: E402
from fishergraph.nn.settings import Network, Training  # noqa: E402
from fishergraph.nn.training import train  # noqa: E402
from fishergraph.ops.tensor_edges import tensor_sets  # noqa: E402

__all__ = [
    "FisherAggregation",
    "FisherConv",
    "FisherNet",
    "History",
    "LinearMap",
    "Network",
    "NystromHead",
    "Training",
    "WeightedMixture",
    "tensor_sets",
    "train",
]
