"""PyTorch Geometric: layers, models and training (the extra `torch`).

lazy         widths that the first input decides
sets         edge_index → multisets, remembered
mixture      anchors as parameters, EM from them, φ
kernel_map   ψ: NystromMap, and the linear and ReLU heads
lifted       members made of several rows, by row blocks
aggr, conv   FisherAggregation, FisherConv
rows         rows of x, dense or sparse
models       FisherNet: the stack; inference runs it layer by layer
loader       neighbourhoods of mini-batches
training     train; behind it training_door, batches, loop, watch, checkpoint, history
classifier   FisherClassifier, for scikit-learn users, and its labels
"""

from fishergraph._optional import require

require("torch", extra="torch")
require("torch_geometric", extra="torch")

from fishergraph.nn.aggr import FisherAggregation  # noqa: E402
from fishergraph.nn.classifier import FisherClassifier  # noqa: E402
from fishergraph.nn.conv import FisherConv  # noqa: E402
from fishergraph.nn.history import History  # noqa: E402
from fishergraph.nn.kernel_map import NystromMap  # noqa: E402
from fishergraph.nn.models import FisherNet  # noqa: E402
from fishergraph.nn.training import train  # noqa: E402

__all__ = ["FisherAggregation", "FisherClassifier", "FisherConv", "FisherNet", "History", "NystromMap", "train"]
