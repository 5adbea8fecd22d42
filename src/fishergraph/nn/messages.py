"""A Fisher layer by messages, which explainers and hooks of PyG read and mask."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn.conv import MessagePassing

from fishergraph._errors import InputError
from fishergraph.multiset import Neighbourhood
from fishergraph.nn.edges import edge_sets, listed_edges
from fishergraph.nn.heads import LinearHead
from fishergraph.nn.lifted import check_plain
from fishergraph.nn.rows import match_dtype
from fishergraph.ops.tensor_sets import TensorSets


class Messages(MessagePassing):
    """The messages of a layer, of size edge × anchor × feature: they are made only if somebody reads them."""

    multiset: Any
    mixture: Any
    head: Any
    add_self_loops: bool

    def _explained(self, source: Tensor, edge_index: Any, edge_weight: Tensor | None, size: tuple[int, int]) -> Tensor:
        """The same by messages of size edge × anchor × feature, which explainers can read and mask."""
        check_plain(edge_index, "an explanation")
        rule = Neighbourhood() if isinstance(edge_index, TensorSets) else self.multiset
        if rule.undirected or self.multiset.kinds > 1 or getattr(rule, "direction", None) == "out":
            expected = "have undirected=False and direction=None in an explanation"
            advice = "pass edge_index with the directions you want"
            raise InputError(parameter="multiset", value=rule, expected=expected, advice=advice)
        edges, weights = listed_edges(edge_index, edge_weight, size, loops=self.add_self_loops)
        order = torch.sort(edges[1], stable=True).indices
        weights = None if weights is None else weights[order]
        rule = Neighbourhood(closed=False, weights=rule.weights)
        options: dict[str, Any] = {"n_points": size[0], "n_sets": size[1], "rule": rule, "dtype": source.dtype}
        sets = edge_sets(edges[:, order], weights, **options)
        attention, mass = self.mixture.attended(source, sets)
        alpha = torch.empty_like(attention).index_copy(0, order, attention)  # in the order of the edges
        steps = self.propagate(edges, x=(self.mixture.statistics(source), None), alpha=alpha, size=size)
        # A mask of messages moves the means; the masses are those of all members.
        phi = self.mixture.embedded(steps + self.mixture.centres(steps.dtype), mass)
        if not isinstance(self.head, LinearHead):
            return match_dtype(phi if self.head is None else self.head(phi), source)
        return self.head.finish(match_dtype(F.linear(phi, self.head.weight.to(phi.dtype)), source))

    def message(self, x_j: Tensor, alpha: Tensor) -> Tensor:
        """Return the messages α_e (t_e − E t_j) of the edges.

        For the Gaussian mixture t_e − E t_j is x_e − w_j. The sum of the messages of a set is how far its means are
        from those at θ_0; for an empty set it is zero.

        Parameters
        ----------
        x_j : Tensor of shape (n_edges, n_statistics)
            The statistics t of the sources.
        alpha : Tensor of shape (n_edges, n_anchors)
            The attention.

        Returns
        -------
        Tensor of shape (n_edges, n_anchors, n_statistics)
            One message per edge.
        """
        return alpha[..., None] * (x_j[:, None, :] - self.mixture.centres(x_j.dtype))
