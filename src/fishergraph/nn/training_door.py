"""The door of `train`: features, labels, edges and two sets of nodes, checked once, a sentence for each fault."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from fishergraph._arrays import check_finite_rows
from fishergraph.multiset import LiftedSets, Multisets
from fishergraph.nn.lifted import n_outputs
from fishergraph.ops.tensor_edges import check_edges, tensor_sets
from fishergraph.ops.tensor_rows import check_csr
from fishergraph.ops.tensor_sets import TensorSets

UNLABELLED = -1


@dataclass(frozen=True)
class Task:
    """What is learned from: features, labels (−1 where there is none), edges, and nodes to train and validate on."""

    x: Tensor  # (node, feature), dense or sparse CSR
    y: Tensor  # (node,), int64
    edge_index: Any  # a (2, edge) tensor, an EdgeIndex, a sparse tensor, TensorSets or LiftedSets
    edge_weight: Tensor | None
    train: Tensor  # node numbers, int64
    val: Tensor  # node numbers, int64; none where nothing is held out

    @property
    def n_nodes(self) -> int:
        return len(self.y)

    def to(self, device: torch.device) -> Task:
        """The same on a device."""
        moved = {name: _moved(getattr(self, name), device) for name in vars(self)}
        return replace(self, **moved)


def _moved(value: Any, device: torch.device) -> Any:
    return None if value is None else value.to(device)


def open_task(model: Any, x: Any, y: Any, edge_index: Any, edge_weight: Any, train: Any, val: Any) -> Task:
    """The task, or the sentence that says what is wrong with it."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch module, got {type(model).__name__}; build a FisherNet, for example.")
    if not any(weight.requires_grad for weight in model.parameters()):
        raise ValueError("model must have parameters to train, got none; unfreeze some with .requires_grad_().")
    x = _features(x, model_option(model, "in_channels"))
    x = x.to(next((weight.dtype for weight in model.parameters() if weight.is_floating_point()), x.dtype))
    edges, weights = _edges(edge_index, edge_weight, x.shape[0])
    n_nodes = n_outputs(edges) if isinstance(edges, LiftedSets) else x.shape[0]
    n_classes = model_option(model, "out_channels")
    if n_classes is None and hasattr(model, "config"):
        raise ValueError("model must have a classifier to train, got out_channels=None; pass the number of classes.")
    y = _labels(y, n_nodes, n_classes)
    train, val = _nodes(train, n_nodes, "train"), _nodes([] if val is None else val, n_nodes, "val")
    train, val = train.to(y.device), val.to(y.device)
    _check_split(y, train, val)
    return Task(x, y, edges, weights, train, val)


def model_option(model: Any, name: str) -> Any:
    """What a model says of itself: an argument of its constructor, or an attribute as PyG's models have it; or None."""
    return model.config().get(name) if hasattr(model, "config") else getattr(model, name, None)


def _features(x: Any, in_channels: int | None) -> Tensor:
    """Features (node, feature) in floats, finite, as wide as the model expects."""
    x = _tensor(x, "x", "the features of the nodes")
    if x.ndim != 2 or x.layout not in (torch.strided, torch.sparse_csr) or not x.is_floating_point():
        raise ValueError(
            f"x must be floats in the shape (node, feature), dense or sparse CSR, got {x.dtype} of {tuple(x.shape)} "
            f"({x.layout}); convert it with .float(), or .to_sparse_csr()."
        )
    if in_channels is not None and in_channels not in (-1, x.shape[1]):
        raise ValueError(
            f"x must have {in_channels} features, the in_channels of the model, got {x.shape[1]}; pass these features "
            "or build the model for them."
        )
    sparse = x.layout == torch.sparse_csr
    if sparse:
        check_csr(x, "x")
    check_finite_rows(x.values() if sparse else x, "x", indptr=x.crow_indices() if sparse else None)
    return x


def _tensor(value: Any, name: str, what: str) -> Tensor:
    """The value as a tensor, if it is anything that can be one."""
    try:
        return torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError):
        got = repr(value) if value is None or isinstance(value, str) else type(value).__name__
        raise TypeError(f"{name} must be {what}, got {got}; pass them as a tensor.") from None


def _labels(y: Any, n_nodes: int, n_classes: int | None) -> Tensor:
    """Labels (node,) in int64 on the host, −1 or a class number."""
    y = _tensor(y, "y", "the class numbers of the nodes").cpu()
    if y.shape != (n_nodes,) or y.is_floating_point() or y.is_complex() or y.dtype == torch.bool:
        raise ValueError(
            f"y must hold one whole number for each of the {n_nodes} nodes, got {y.dtype} of {tuple(y.shape)}; "
            "number the classes from 0, and mark nodes without a label -1."
        )
    y = y.long()
    wrong = y < UNLABELLED if n_classes is None else (y < UNLABELLED) | (y >= n_classes)
    if bool(wrong.any()):
        row = int(torch.nonzero(wrong)[0])
        most = "" if n_classes is None else f" to {n_classes - 1}, the classes of the model"
        raise ValueError(
            f"labels must be -1 (none) or 0{most or ' and up'}, got {int(y[row])} in row {row} (the first bad one); "
            "number the classes from 0, or raise out_channels."
        )
    return y


def _nodes(nodes: Any, n_nodes: int, name: str) -> Tensor:
    """Node numbers on the host, from a mask or from numbers, each once."""
    nodes = _tensor(nodes, name, "a mask or a list of node numbers").cpu()
    if nodes.dtype == torch.bool:
        if nodes.shape != (n_nodes,):
            raise ValueError(
                f"{name} as a mask must have one entry for each of the {n_nodes} nodes, got {tuple(nodes.shape)}; "
                "pass such a mask, or node numbers."
            )
        return torch.nonzero(nodes).ravel()
    if nodes.ndim != 1 or (nodes.is_floating_point() and len(nodes)):
        raise ValueError(
            f"{name} must be a mask or a list of node numbers, got {nodes.dtype} of {tuple(nodes.shape)}; pass one."
        )
    nodes = nodes.long()
    if len(nodes) and (int(nodes.min()) < 0 or int(nodes.max()) >= n_nodes):
        raise ValueError(
            f"{name} must hold nodes 0 to {n_nodes - 1}, got {int(nodes.min())} to {int(nodes.max())}; number them so."
        )
    return torch.unique(nodes)


def _check_split(y: Tensor, train: Tensor, val: Tensor) -> None:
    """Raise unless there is something to learn from, nothing is in both sets, and every class can be learned."""
    if not bool((y >= 0).any()):
        raise ValueError("y must hold at least one label, got -1 for every node; label the nodes to train on.")
    if not len(train):
        raise ValueError("train must hold at least one node, got none; pass a mask or numbers of labelled nodes.")
    for name, nodes in (("train", train), ("val", val)):
        bare = nodes[y[nodes] < 0]
        if len(bare):
            raise ValueError(
                f"{name} must hold labelled nodes, got node {int(bare[0])} with label -1 (the first of {len(bare)}); "
                "leave such nodes out."
            )
    both = train[torch.isin(train, val)]
    if len(both):
        raise ValueError(
            f"train and val must not overlap, got node {int(both[0])} in both (the first of {len(both)}); "
            "leave such nodes out of one of them."
        )
    strange = y[(y >= 0) & ~torch.isin(y, y[train])]
    if len(strange):
        label = int(strange.min())
        count = int((strange == label).sum())
        raise ValueError(
            f"class {label} must have a training node, got {count} labelled nodes of it and none in train; "
            "add one to train, or mark these nodes -1."
        )


def _edges(edge_index: Any, edge_weight: Any, n_nodes: int) -> tuple[Any, Tensor | None]:
    """Edges among these nodes, kept in the form in which they came."""
    weights = None if edge_weight is None else _tensor(edge_weight, "edge_weight", "one number for each edge")
    if isinstance(edge_index, (Multisets, LiftedSets)):
        edge_index = tensor_sets(edge_index)
    grouped = isinstance(edge_index, (TensorSets, LiftedSets))
    if grouped or getattr(edge_index, "layout", torch.strided) != torch.strided:
        sets = tensor_sets(edge_index, weights=weights)
        if (sets.n_sets, sets.n_points) != (n_nodes, n_nodes):
            raise ValueError(
                f"edge_index must hold one set for each of the {n_nodes} rows of x, over these rows, got {sets.n_sets} "
                f"over {sets.n_points}; pass the edges of these nodes."
            )
        return edge_index, weights
    edge_index = _tensor(edge_index, "edge_index", "a (2, edge) tensor, a sparse tensor or multisets")
    check_edges(getattr(edge_index, "as_tensor", lambda: edge_index)(), weights, n_nodes)
    return edge_index, weights
