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

from fishergraph._errors import InputError
from fishergraph._validation import MOST_COLUMNS, check_flag, check_integer, check_seed
from fishergraph.nn.loader_source import read_source
from fishergraph.nn.rows import is_sparse, named_device, node_numbers
from fishergraph.nn.sampling import new_map, sample_neighbourhood

_log = logging.getLogger(__name__)

# Arguments that only our loader has.
_OURS = frozenset({"x", "y", "seed", "keep_loops", "device"})


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
    data : Data, TensorSets, Multisets or OpenGraph
        A homogeneous graph with x and edge_index (or adj_t, whose values become ``edge_weight``); the multisets of all
        nodes, with features and labels as `x` and `y`; or a graph on disk, with labels as `y`.
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
        features = next(column for column in source.columns if column.name == "x")
        self.device = features.device if device is None else named_device(device)
        # Tensors on a GPU are sliced by the thread that uses the batch, on its stream.
        self._near = [column for column in source.columns if column.device.type == "cpu"]
        self._far = [column for column in source.columns if column.device.type != "cpu"]
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
            local = new_map(self._rows)
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
        if sampled.weights is not None:
            batch.edge_weight = self._pinned(torch.from_numpy(sampled.weights))
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


# --- arguments -----------------------------------------------------------------------------------------------


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
