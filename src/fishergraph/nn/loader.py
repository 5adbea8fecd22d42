"""Mini-batches of sampled neighbourhoods: a loader with no compiled parts beyond numba, and the choice of loader."""

from __future__ import annotations

import copy
import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import torch
import torch_geometric.typing
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader

from fishergraph._errors import InputError, InputTypeError
from fishergraph._validation import MOST_COLUMNS, check_flag, check_integer, check_seed
from fishergraph.multiset import Multisets
from fishergraph.nn.edges import checked_edges
from fishergraph.nn.rows import described, is_sparse, named_device, node_numbers, take_rows
from fishergraph.nn.sampling import MemberRows, rows_of_edges, rows_of_sets, sample_neighbourhood
from fishergraph.ops.tensor_edges import tensor_sets
from fishergraph.ops.tensor_sets import TensorSets, check_range, check_sets

_log = logging.getLogger(__name__)

# Arguments that only our loader has.
_OURS = frozenset({"x", "y", "seed", "keep_loops", "device"})
# Attributes of a graph that a batch does not slice but replaces.
_STRUCTURE = ("edge_index", "adj_t", "num_nodes")


class Column(NamedTuple):
    """A tensor with one slice along `dim` for every node (or edge), under its name in a batch."""

    name: str
    values: Tensor
    dim: int
    of_edges: bool

    def take(self, nodes: Tensor, edges: Tensor) -> Tensor:
        """The slices of a batch (copied)."""
        chosen = (edges if self.of_edges else nodes).to(self.values.device)
        return take_rows(self.values, chosen) if is_sparse(self.values) else self.values.index_select(self.dim, chosen)


class Source(NamedTuple):
    """What batches are cut from; `template` holds what all of them have in common."""

    rows: MemberRows
    template: Data
    columns: list[Column]


class Prepared(NamedTuple):
    """A batch, and the nodes and entries it was cut from (an `n_id` of the data itself precedes the batch's)."""

    batch: Data
    nodes: Tensor
    entries: Tensor


class CSRNeighborLoader:
    """Batches of seed nodes with their sampled neighbourhoods, called like PyG's `NeighborLoader`.

    Every hop takes up to ``num_neighbors[hop]`` in-neighbours, without replacement, of each node that the hop before it
    found (seeds first). A batch is a `Data` with what PyG's loader gives: the node-level tensors of ``n_id`` (x, y,
    masks, …), the edge-level tensors of ``e_id``, ``edge_index`` in local numbers, ``input_id``, ``batch_size`` (the
    seeds are the first rows), and ``num_sampled_nodes``, ``num_sampled_edges`` by hop, for `trim_to_layer`.
    ``edge_index`` is an `EdgeIndex` sorted by target, so that `tensor_sets` need not sort it.

    The batches of one ``seed`` and ``epoch`` are the same at any ``num_workers``. Each iteration is the next epoch; set
    ``epoch`` to return to an earlier one or to resume.

    Parameters
    ----------
    data : Data, TensorSets or Multisets
        A homogeneous graph with x and edge_index (or adj_t, whose values become ``edge_weight``), or the multisets of
        all nodes, with features and labels as `x` and `y`.
    num_neighbors : list of int
        Fan-out per hop; -1 takes all.
    input_nodes : mask, node numbers or None, default=None
        The seeds; None takes all nodes.
    batch_size : int, default=1
        Seeds of a batch.
    shuffle : bool, default=False
        Draw a new order of the seeds in every epoch.
    drop_last : bool, default=False
        Leave out a last batch with fewer seeds.
    x, y : Tensor, optional
        Features and labels beside multisets.
    seed : int, default=0
        Decides the order and the samples.
    keep_loops : bool, default=True
        Keep every self-loop; they do not count against the fan-out.
    num_workers : int, default=1
        Threads that prepare batches ahead; 0 prepares them when they are used.
    prefetch_factor : int, default=2
        Batches that each thread prepares ahead.
    transform : callable, optional
        Applied to every batch in the end.
    pin_memory : bool, default=False
        Use pinned memory, which is copied to a GPU faster.
    device : str or torch.device, optional
        Where batches are moved to; None is the device of the features.

    See Also
    --------
    neighbor_loader : PyG's loader if its compiled parts are installed, otherwise this one.

    Examples
    --------
    >>> import torch
    >>> from torch_geometric.data import Data
    >>> from fishergraph.nn.loader import CSRNeighborLoader
    >>> data = Data(x=torch.randn(4, 2), edge_index=torch.tensor([[0, 1, 2], [1, 2, 3]]))
    >>> [batch.batch_size for batch in CSRNeighborLoader(data, [2, 2], batch_size=3)]
    [3, 1]
    """

    def __init__(
        self,
        data: Any,
        num_neighbors: Sequence[int],
        input_nodes: Any = None,
        batch_size: int = 1,
        shuffle: bool = False,
        drop_last: bool = False,
        *,
        x: Tensor | None = None,
        y: Tensor | None = None,
        seed: int = 0,
        keep_loops: bool = True,
        num_workers: int = 1,
        prefetch_factor: int = 2,
        transform: Callable[[Data], Data] | None = None,
        pin_memory: bool = False,
        device: Any = None,
    ):
        self.num_neighbors = check_fan_outs(num_neighbors)
        self.batch_size = check_integer(batch_size, "batch_size", least=1, most=MOST_COLUMNS)
        self.shuffle, self.drop_last = check_flag(shuffle, "shuffle"), check_flag(drop_last, "drop_last")
        self.seed = check_seed(seed)
        self.num_workers = check_integer(num_workers, "num_workers", least=0, most=1024)
        self.prefetch_factor = check_integer(prefetch_factor, "prefetch_factor", least=1, most=1024)
        # As in PyTorch's loader, pinning is left out without a GPU.
        self.pin_memory = check_flag(pin_memory, "pin_memory") and torch.cuda.is_available()
        self.transform = transform
        source = read_source(data, x, y, check_flag(keep_loops, "keep_loops"))
        self._rows, self._template = source.rows, source.template
        features = next(column.values for column in source.columns if column.name == "x")
        self.device = features.device if device is None else named_device(device)
        # Tensors on a GPU are sliced by the thread that uses the batch, on its stream.
        self._near = [column for column in source.columns if column.values.device.type == "cpu"]
        self._far = [column for column in source.columns if column.values.device.type != "cpu"]
        self._seeds, self._input_id = check_input_nodes(input_nodes, self._rows.n_nodes)
        self._maps: list[np.ndarray] = []  # from nodes to local numbers, one for each working thread
        self.epoch = 0

    @property
    def epoch(self) -> int:
        """The number of the epoch of the next iteration."""
        return self._epoch

    @epoch.setter
    def epoch(self, epoch: int) -> None:
        self._epoch = check_integer(epoch, "epoch", least=0, most=MOST_COLUMNS)

    def __len__(self) -> int:
        full, rest = divmod(len(self._seeds), self.batch_size)
        return full + (rest > 0 and not self.drop_last)

    def __repr__(self) -> str:
        sizes = f"input_nodes={len(self._seeds)}, batch_size={self.batch_size}"
        return f"{type(self).__name__}(num_neighbors={self.num_neighbors}, {sizes})"

    def __iter__(self) -> Iterator[Data]:
        """The batches of the next epoch, in order."""
        epoch, self.epoch = self.epoch, self.epoch + 1
        return self._run(epoch)

    def _run(self, epoch: int) -> Iterator[Data]:
        order = np.arange(len(self._seeds))
        if self.shuffle:
            np.random.default_rng([self.seed, epoch]).shuffle(order)
        tasks = ((epoch, b, order[b * self.batch_size : (b + 1) * self.batch_size]) for b in range(len(self)))
        if self.num_workers == 0:
            yield from (self._finish(self._prepare(*task)) for task in tasks)
            return
        ahead: deque[Future[Prepared]] = deque()
        pool = ThreadPoolExecutor(self.num_workers, thread_name_prefix="fishergraph-loader")
        try:
            for task in tasks:
                ahead.append(pool.submit(self._prepare, *task))
                if len(ahead) > self.num_workers * self.prefetch_factor:
                    yield self._finish(ahead.popleft().result())
            while ahead:
                yield self._finish(ahead.popleft().result())
        finally:  # also if the loop over the batches ends early
            pool.shutdown(cancel_futures=True)

    def _prepare(self, epoch: int, number: int, chosen: np.ndarray) -> Prepared:
        """A batch without the work of the thread that uses it."""
        key = np.random.SeedSequence([self.seed, epoch], spawn_key=(number,)).generate_state(1, np.uint64)[0]
        try:  # another thread may take the last one
            local = self._maps.pop()
        except IndexError:
            local = self._rows.new_map()
        sampled = sample_neighbourhood(self._rows, self._seeds[chosen], self.num_neighbors, key, local)
        self._maps.append(local)
        nodes, edges = self._pinned(torch.from_numpy(sampled.nodes)), self._pinned(torch.from_numpy(sampled.edges))
        batch = copy.copy(self._template)
        batch.n_id, batch.e_id, batch.input_id = nodes, edges[2], torch.from_numpy(self._input_id[chosen])
        size = (len(nodes), len(nodes))
        batch.edge_index = EdgeIndex(edges[:2], sparse_size=size, sort_order="col")  # pyright: ignore
        batch.batch_size = len(chosen)
        batch.num_sampled_nodes, batch.num_sampled_edges = sampled.n_nodes, sampled.n_edges
        for column in self._near:
            batch[column.name] = self._pinned(column.take(nodes, edges[2]))
        return Prepared(batch, nodes, edges[2])

    def _pinned(self, tensor: Tensor) -> Tensor:
        """The tensor, in pinned memory if wanted; not sparse ones, which not every PyTorch can pin."""
        return tensor.pin_memory() if self.pin_memory and not is_sparse(tensor) else tensor

    def _finish(self, prepared: Prepared) -> Data:
        """The batch on its device, with the slices of the tensors on a GPU."""
        batch, nodes, entries = prepared
        for column in self._far:
            batch[column.name] = column.take(nodes, entries)
        batch = batch.to(self.device, non_blocking=self.pin_memory)
        return batch if self.transform is None else self.transform(batch)


def neighbor_loader(data: Any, num_neighbors: Sequence[int], **kwargs: Any) -> NeighborLoader | CSRNeighborLoader:
    """Return PyG's `NeighborLoader` if its compiled parts are installed, otherwise ours; the log says why.

    Parameters
    ----------
    data : Data, TensorSets or Multisets
        The graph; multisets need our loader.
    num_neighbors : list of int
        Fan-out per hop; -1 takes all.
    **kwargs
        Arguments of the loader; `x`, `y`, `seed`, `keep_loops` and `device` need ours.

    Returns
    -------
    NeighborLoader or CSRNeighborLoader
        The loader.

    Examples
    --------
    >>> import torch
    >>> from torch_geometric.data import Data
    >>> from fishergraph.nn.loader import neighbor_loader
    >>> data = Data(x=torch.randn(4, 2), edge_index=torch.tensor([[0, 1, 2], [1, 2, 3]]))
    >>> neighbor_loader(data, [2], batch_size=2, seed=0)
    CSRNeighborLoader(num_neighbors=[2], input_nodes=4, batch_size=2)
    """
    asked = sorted(_OURS & kwargs.keys())
    if asked or not isinstance(data, Data):
        reason = f"{', '.join(asked)} is only taken by it" if asked else f"data is {type(data).__name__}"
    elif torch_geometric.typing.WITH_PYG_LIB or torch_geometric.typing.WITH_TORCH_SPARSE:
        _log.info("sampling neighbours with PyG's NeighborLoader")
        return NeighborLoader(data, list(num_neighbors), **kwargs)
    else:
        reason = "PyG's needs pyg_lib or torch_sparse, and neither can be imported"
    _log.info("sampling neighbours with fishergraph's CSRNeighborLoader: %s", reason)
    return CSRNeighborLoader(data, num_neighbors, **kwargs)


# --- what batches are cut from -----------------------------------------------------------------------------


def read_source(data: Any, x: Tensor | None, y: Tensor | None, keep_loops: bool) -> Source:
    """The source of a PyG `Data`, or of multisets with features (and labels) beside them."""
    if isinstance(data, (TensorSets, Multisets)):
        return _source_of_sets(check_sets(tensor_sets(data)), x, y, keep_loops)
    if not isinstance(data, Data):
        expected, advice = "be a Data of PyG, TensorSets or Multisets", "convert it, as with to_homogeneous()"
        got = type(data).__name__
        raise InputTypeError(parameter="data", value=data, expected=expected, got=got, advice=advice)
    if x is not None or y is not None:
        raise InputError("x and y must be attributes of data if it is a Data; set data.x and data.y.", parameter="x")
    features = data.x
    n_nodes = _check_features(features, None if features is None else data.num_nodes, "data.x")
    rows, weights = _rows_of_data(data, n_nodes, keep_loops)
    columns = [*_columns_of_data(data), *weights]
    template = copy.copy(data)
    for name in (*_STRUCTURE, *(column.name for column in columns)):
        if name in template:
            del template[name]
    return Source(rows, template, columns)


def _source_of_sets(sets: TensorSets, x: Tensor | None, y: Tensor | None, keep_loops: bool) -> Source:
    n_nodes = _check_features(x, sets.n_points, "x")
    if sets.n_sets != n_nodes:
        expected = f"hold one multiset for each of the {n_nodes} points"
        raise InputError(parameter="data", expected=expected, got=str(sets.n_sets))
    if y is not None and (not isinstance(y, Tensor) or y.ndim == 0 or len(y) != n_nodes):
        expected = f"be a tensor with one row for each of the {n_nodes} nodes"
        raise InputError(parameter="y", expected=expected, got=described(y))
    columns = [Column(name, values, 0, False) for name, values in (("x", x), ("y", y)) if values is not None]
    if sets.weights is not None:
        columns.append(Column("edge_weight", sets.weights, 0, True))
    rows = rows_of_sets(_numpy(sets.indptr), _numpy(sets.indices), keep_loops=keep_loops)
    return Source(rows, Data(), columns)


def _check_features(x: Any, n_nodes: int | None, name: str) -> int:
    """The number of nodes, each of which must have a row of features."""
    if x is None:
        raise InputError(parameter=name, expected="hold features, one row for each node")
    if not isinstance(x, Tensor) or x.layout not in (torch.strided, torch.sparse_csr) or x.ndim == 0:
        raise InputTypeError(parameter=name, expected="be a tensor, dense or sparse CSR", got=described(x))
    if len(x) != n_nodes:
        raise InputError(parameter=name, expected=f"have one row for each of the {n_nodes} nodes", got=str(len(x)))
    return len(x)


def _rows_of_data(data: Data, n_nodes: int, keep_loops: bool) -> tuple[MemberRows, list[Column]]:
    """The rows of `edge_index`, or of `adj_t` and its values as weights."""
    if "edge_index" in data:
        sources, targets = checked_edges(data["edge_index"])
        for name, ends in (("sources", sources), ("targets", targets)):
            check_range(ends, n_nodes, name)
        return rows_of_edges(_numpy(sources), _numpy(targets), n_nodes, keep_loops=keep_loops), []
    if "adj_t" not in data:
        raise InputError(parameter="data", expected="have an edge_index (or adj_t)", got=str(sorted(data.keys())))
    indptr, indices, values = _compressed(data["adj_t"])
    _ = TensorSets(indptr, indices, None, n_nodes).sound
    if len(indptr) - 1 != n_nodes:
        expected = f"be a square matrix with a row for each of the {n_nodes} nodes"
        raise InputError(parameter="adj_t", expected=expected, got=str(len(indptr) - 1))
    columns = [] if values is None else [Column("edge_weight", values, 0, True)]
    return rows_of_sets(_numpy(indptr), _numpy(indices), keep_loops=keep_loops), columns


def _compressed(adj_t: Any) -> tuple[Tensor, Tensor, Tensor | None]:
    """(indptr, indices, values) of a sparse matrix whose rows are the targets."""
    if hasattr(adj_t, "csr"):  # torch_sparse's SparseTensor
        return adj_t.csr()
    if not isinstance(adj_t, Tensor) or adj_t.layout == torch.strided or adj_t.ndim != 2:
        got, advice = type(adj_t).__name__, "use edge_index for pairs of nodes"
        raise InputTypeError(parameter="adj_t", expected="be a sparse matrix", got=got, advice=advice)
    matrix = adj_t if adj_t.layout == torch.sparse_csr else adj_t.to_sparse_csr()
    return matrix.crow_indices().long(), matrix.col_indices(), matrix.values()


def _columns_of_data(data: Data) -> list[Column]:
    """The attributes that PyG counts as those of nodes or of edges."""
    columns = []
    for name, values in data.to_dict().items():
        if name in _STRUCTURE or not (data.is_edge_attr(name) or data.is_node_attr(name)):
            continue
        of_edges = data.is_edge_attr(name)
        values = torch.from_numpy(values) if isinstance(values, np.ndarray) else values
        if not isinstance(values, Tensor):
            expected = f"be a tensor, because it has one entry for each {'edge' if of_edges else 'node'}"
            raise InputTypeError(parameter=f"data.{name}", expected=expected, got=type(values).__name__)
        columns.append(Column(name, values, data.__cat_dim__(name, values), of_edges))
    return columns


def check_fan_outs(num_neighbors: Any, name: str = "num_neighbors") -> list[int]:
    """The fan-outs of the hops as a list of ints: −1 for all, or at least one."""
    fan_outs = num_neighbors if isinstance(num_neighbors, (list, tuple)) else []
    integers = all(isinstance(k, (int, np.integer)) and not isinstance(k, bool) for k in fan_outs)
    if not fan_outs or not integers or any(k == 0 or k < -1 for k in fan_outs):
        expected = "be a list with an integer of at least 1 (or -1 for all) for each hop, such as [10, 10]"
        raise InputError(parameter=name, value=num_neighbors, expected=expected)
    return [check_integer(k, name, least=-1, most=MOST_COLUMNS) for k in fan_outs]


def check_input_nodes(input_nodes: Any, n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """The seeds, and the `input_id` of a batch for each of them.

    As in PyG's loader, `input_id` counts the seeds, and is the node itself for a mask.
    """
    if input_nodes is None:
        return np.arange(n_nodes), np.arange(n_nodes)
    seeds = node_numbers(input_nodes, n_nodes, "input_nodes").numpy()
    if not len(seeds):
        raise InputError(parameter="input_nodes", expected="hold at least one node", got="none")
    masked = (input_nodes if isinstance(input_nodes, Tensor) else np.asarray(input_nodes)).dtype in (torch.bool, bool)
    return seeds, seeds if masked else np.arange(len(seeds))


def _numpy(tensor: Tensor) -> np.ndarray:
    return tensor.detach().cpu().contiguous().numpy()
