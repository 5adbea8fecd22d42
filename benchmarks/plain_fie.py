"""The published algorithm, written plainly in PyTorch: the peer that speed and accuracy are measured against.

It follows the paper's method as its published code runs it, step by step and with no tricks:

- the rows of X have unit length, and every node has a self-loop;
- k-means is spherical, starts at random points and runs up to a hundred iterations with a loop over the clusters;
- ψ is the Nyström map of κ(u) = exp((u − 1)/σ²), with 1/(√λ + 0.01) as its inverse square root;
- a layer builds one message per edge, (edge, feature, anchor): α = softmax_j(cos/d), the attention is a softmax of
  these probabilities over the neighbours, and φ is the sum of the messages minus the anchors;
- ψ follows in every layer but the last; the output is the concatenation of all layers;
- to fit a layer the representation is computed from the input again.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

MAX_SAMPLES = 300_000
SHRINKAGE = 0.01


def unit(x: Tensor) -> Tensor:
    """The rows divided by their lengths; a zero row stays zero."""
    return x / x.norm(dim=1, keepdim=True).clamp(min=1e-12)


def sample_rows(n_rows: int, generator: torch.Generator) -> Tensor:
    """At most 300,000 row numbers, at random."""
    return torch.randperm(n_rows, generator=generator)[:MAX_SAMPLES]


def spherical_kmeans(
    x: Tensor, n_clusters: int, generator: torch.Generator, max_iter: int = 100, tol: float = 1e-6
) -> Tensor:
    """Unit centres (cluster, feature) that raise Σ_i max_j ⟨x_i, c_j⟩ of unit rows x."""
    centres = x[torch.randperm(len(x), generator=generator)[:n_clusters]].clone()
    before = float("inf")
    for _ in range(max_iter):
        similarity, label = (x @ centres.T).max(dim=1)
        mean = similarity.mean().item()
        for j in range(len(centres)):
            members = x[label == j]
            if len(members) == 0:
                worst = similarity.argmin()
                centres[j] = x[worst]
                similarity[worst] = 1.0  # no other empty cluster takes it too
            else:
                centres[j] = unit(members.mean(dim=0, keepdim=True))[0]
        if abs(before - mean) < tol * (abs(mean) + 1e-20):
            break
        before = mean
    return centres


@dataclass
class PlainNystrom:
    """ψ(x) = ‖x‖ κ(W x/‖x‖) κ(W Wᵀ)^{-1/2}."""

    landmarks: Tensor  # (landmark, feature), unit rows
    root: Tensor  # (landmark, landmark)
    sigma: float

    def __call__(self, x: Tensor) -> Tensor:
        return (x.norm(dim=1, keepdim=True) * _kappa(unit(x) @ self.landmarks.T, self.sigma)) @ self.root


def _kappa(cosine: Tensor, sigma: float) -> Tensor:
    return torch.exp((cosine - 1) / sigma**2)


def fit_nystrom(x: Tensor, dim: int, sigma: float, generator: torch.Generator) -> PlainNystrom:
    """The map with `dim` landmarks from the rows of x."""
    rows = unit(x[sample_rows(len(x), generator)])
    landmarks = spherical_kmeans(rows, dim, generator)
    values, vectors = torch.linalg.eigh(_kappa(landmarks @ landmarks.T, sigma))
    scale = 1 / (values.clamp(min=0).sqrt() + SHRINKAGE)
    return PlainNystrom(landmarks, (vectors * scale) @ vectors.T, sigma)


def neighbour_softmax(scores: Tensor, target: Tensor, n_nodes: int) -> Tensor:
    """softmax over the edges that share a target, per anchor, (edge, anchor)."""
    index = target[:, None].expand_as(scores)
    highest = scores.new_full((n_nodes, scores.shape[1]), -torch.inf).scatter_reduce(0, index, scores.detach(), "amax")
    weights = torch.exp(scores - highest[target])
    totals = scores.new_zeros(n_nodes, scores.shape[1]).index_add_(0, target, weights)
    return weights / totals[target]


def message_layer(z: Tensor, edges: Tensor, anchors: Tensor) -> Tensor:
    """φ of every node with its messages side by side in memory, (node, feature · anchor)."""
    source, target = edges
    n_nodes, n_features = z.shape
    members = z[source]  # (edge, feature)
    alpha = torch.softmax(unit(members) @ anchors.T / n_features, dim=1)  # (edge, anchor)
    attention = neighbour_softmax(alpha, target, n_nodes)
    messages = members[:, :, None] * attention[:, None, :]  # (edge, feature, anchor)
    sums = z.new_zeros(n_nodes, n_features, len(anchors)).index_add_(0, target, messages)
    return (sums - anchors.T).flatten(1)


class PlainFIE:
    """The stack: `fit(x, edges)`, then `embed(x, edges)`; x (node, feature), edges (2, edge) from source to target."""

    def __init__(self, dim: int, n_anchors: int, n_layers: int, *, sigma: float = 1.0, seed: int = 0):
        self.dim, self.n_anchors, self.n_layers, self.sigma = dim, n_anchors, n_layers, sigma
        self.generator = torch.Generator().manual_seed(seed)

    @torch.no_grad()
    def fit(self, x: Tensor, edges: Tensor) -> PlainFIE:
        x, edges = unit(x), with_loops(edges, len(x))
        self.input_map = fit_nystrom(x, self.dim, self.sigma, self.generator)
        self.layers: list[tuple[Tensor, PlainNystrom | None]] = []
        for t in range(1, self.n_layers + 1):
            z = self._blocks(x, edges)[-1]
            entries = sample_rows(edges.shape[1], self.generator)
            anchors = spherical_kmeans(unit(z[edges[0, entries]]), self.n_anchors, self.generator)
            kernel_map = None
            if t < self.n_layers:
                phi = message_layer(z, edges, anchors)
                kernel_map = fit_nystrom(phi, self.dim, self.sigma, self.generator)
            self.layers.append((anchors, kernel_map))
        return self

    @torch.no_grad()
    def embed(self, x: Tensor, edges: Tensor) -> Tensor:
        """ψ_0, …, ψ_{T−1}, φ_T side by side."""
        return torch.cat(self._blocks(unit(x), with_loops(edges, len(x))), dim=1)

    def _blocks(self, x: Tensor, edges: Tensor) -> list[Tensor]:
        """The output of the input map and of every layer so far."""
        blocks = [self.input_map(x)]
        for anchors, kernel_map in self.layers:
            phi = message_layer(blocks[-1], edges, anchors)
            blocks.append(phi if kernel_map is None else kernel_map(phi))
        return blocks


def with_loops(edges: Tensor, n_nodes: int) -> Tensor:
    """The edges with exactly one self-loop per node."""
    nodes = torch.arange(n_nodes)
    return torch.cat([edges[:, edges[0] != edges[1]], torch.stack([nodes, nodes])], dim=1)
