"""`Task`: what `train` learns from. Features, labels, edges and two sets of nodes, validated once."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor, nn

from fishergraph._arrays import check_finite_rows
from fishergraph._errors import InputError, InputTypeError
from fishergraph._records import UNLABELLED
from fishergraph.multiset import LiftedSets, Multisets
from fishergraph.nn.edges import check_counts
from fishergraph.nn.lifted import n_outputs
from fishergraph.nn.rows import check_rows, described, is_sparse, node_numbers
from fishergraph.nn.stored import OpenGraph
from fishergraph.ops.tensor_edges import check_edges, tensor_sets
from fishergraph.ops.tensor_rows import check_csr
from fishergraph.ops.tensor_sets import TensorSets


@dataclass(frozen=True)
class Task:
    """Features, labels (−1 without one), edges, and the nodes to train and validate on.

    x : (node, feature), dense or sparse CSR; or a stored graph, which has the edges too.
    y : (node,), int64.
    edge_index : a (2, edge) tensor, an EdgeIndex, a sparse tensor, TensorSets or LiftedSets.
    train, val : node numbers, int64; val is empty if nothing is held out.
    """

    x: Any
    y: Tensor
    edge_index: Any
    edge_weight: Tensor | None
    train: Tensor
    val: Tensor

    @property
    def n_nodes(self) -> int:
        return len(self.y)

    @property
    def measured(self) -> Tensor:
        """The nodes whose logits are measured after an epoch: those to train on, then those to validate on."""
        return torch.cat([self.train, self.val])

    def to(self, device: torch.device) -> Task:
        """The same on a device."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{name: None if value is None else value.to(device) for name, value in values.items()})


def make_task(model: Any, x: Any, y: Any, edge_index: Any, edge_weight: Any, train: Any, val: Any) -> Task:
    """The validated task of a model."""
    if not isinstance(model, nn.Module):
        got, advice = type(model).__name__, "build a FisherNet, for example"
        raise InputTypeError(parameter="model", value=model, expected="be a torch module", got=got, advice=advice)
    if not any(weight.requires_grad for weight in model.parameters()):
        advice = "unfreeze some with .requires_grad_()"
        raise InputError(parameter="model", expected="have parameters to train", got="none", advice=advice)
    edges, weights = None, None
    if not isinstance(x, OpenGraph):
        x = _features(x, model_option(model, "in_channels"))
        x = x.to(next((weight.dtype for weight in model.parameters() if weight.is_floating_point()), x.dtype))
        edges, weights = _edges(edge_index, edge_weight, x.shape[0])
    n_nodes = n_outputs(edges) if isinstance(edges, LiftedSets) else len(x)
    n_classes = model_option(model, "out_channels")
    if n_classes is None and hasattr(model, "config"):
        raise InputError(parameter="model", expected="have a classifier to train", got="out_channels=None")
    y = _labels(y, n_nodes, n_classes)
    train = node_numbers(train, n_nodes, "train").unique()
    val = node_numbers([] if val is None else val, n_nodes, "val").unique()
    check_split(y, train, val)
    return Task(x, y, edges, weights, train, val)


def model_option(model: Any, name: str) -> Any:
    """An argument of the constructor of a model, or an attribute of a model of PyG; None without one."""
    return model.config().get(name) if hasattr(model, "config") else getattr(model, name, None)


def _features(x: Any, in_channels: int | None) -> Tensor:
    """Finite floats (node, feature) of the width of the model."""
    x = _tensor(x, "x", "the features of the nodes")
    check_rows(x)
    if in_channels is not None and in_channels not in (-1, x.shape[1]):
        expected = f"have {in_channels} features, the in_channels of the model"
        raise InputError(parameter="x", expected=expected, got=str(x.shape[1]))
    sparse = is_sparse(x)
    if sparse:
        check_csr(x, "x")
    check_finite_rows(x.values() if sparse else x, "x", indptr=x.crow_indices() if sparse else None)
    return x


def _tensor(value: Any, name: str, what: str) -> Tensor:
    """The value as a tensor."""
    try:
        return torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError):
        got = repr(value) if value is None or isinstance(value, str) else type(value).__name__
        raise InputTypeError(parameter=name, expected=f"be {what}", got=got, advice="pass them as a tensor") from None


def _labels(y: Any, n_nodes: int, n_classes: int | None) -> Tensor:
    """Labels (node,) in int64 in host memory, −1 or a class number."""
    y = _tensor(y, "y", "the class numbers of the nodes").cpu()
    if y.shape != (n_nodes,) or y.is_floating_point() or y.is_complex() or y.dtype == torch.bool:
        expected = f"hold one integer for each of the {n_nodes} nodes, a class from 0 on, or -1"
        raise InputError(parameter="y", expected=expected, got=described(y))
    y = y.long()
    wrong = y < UNLABELLED if n_classes is None else (y < UNLABELLED) | (y >= n_classes)
    if bool(wrong.any()):
        row = int(torch.nonzero(wrong)[0])
        most = " and up" if n_classes is None else f" to {n_classes - 1}, the classes of the model"
        got = f"{int(y[row])} in row {row} (the first bad one)"
        raise InputError(parameter="y", expected=f"hold -1 (no label) or 0{most}", got=got)
    return y


def check_split(y: Tensor, train: Tensor, val: Tensor, names: Any = None) -> None:
    """Raise unless there are labels, nothing is in both sets, and every class has a training node.

    `names` are the classes in the words of the user, if they are not numbers.
    """
    if not bool((y >= 0).any()):
        raise InputError(parameter="y", expected="hold at least one label", got="-1 for every node")
    if not len(train):
        raise InputError(parameter="train", expected="hold at least one labelled node", got="none")
    for name, nodes in (("train", train), ("val", val)):
        bare = nodes[y[nodes] < 0]
        if len(bare):
            got = f"node {int(bare[0])} with label -1 (the first of {len(bare)})"
            raise InputError(parameter=name, expected="hold labelled nodes", got=got)
    both = train[torch.isin(train, val)]
    if len(both):
        raise InputError(
            f"train and val must not overlap, got node {int(both[0])} in both (the first of {len(both)}); "
            "leave such nodes out of one of them.",
            parameter="val",
        )
    strange = y[(y >= 0) & ~torch.isin(y, y[train])]
    if len(strange):
        label = int(strange.min())
        name, count = label if names is None else names[label], int((strange == label).sum())
        raise InputError(
            f"class {name!r} must have a node to train on, got {count} labelled nodes of it, all held out; "
            "train on one of them, or remove their labels.",
            parameter="train",
        )


def _edges(edge_index: Any, edge_weight: Any, n_nodes: int) -> tuple[Any, Tensor | None]:
    """Edges among these nodes, in the form in which they were passed."""
    weights = None if edge_weight is None else _tensor(edge_weight, "edge_weight", "one number for each edge")
    if isinstance(edge_index, (Multisets, LiftedSets)):
        edge_index = tensor_sets(edge_index)
    grouped = isinstance(edge_index, (TensorSets, LiftedSets))
    if grouped or getattr(edge_index, "layout", torch.strided) != torch.strided:
        sets = tensor_sets(edge_index, weights=weights)
        check_counts(sets, n_nodes, n_nodes)
        return edge_index, weights
    edge_index = _tensor(edge_index, "edge_index", "a (2, edge) tensor, a sparse tensor or multisets")
    check_edges(getattr(edge_index, "as_tensor", lambda: edge_index)(), weights, n_nodes)
    return edge_index, weights
