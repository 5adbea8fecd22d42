"""Other families as modules: their parameters in coordinates that no gradient step can leave, and φ at them.

    "diagonal-mixture"   logits of the weights, means, and log-variances
    "von-mises-fisher"   logits of the weights, and κ u, any vector

The points' statistics t(x) take the place of the points in the operators of the engine room: one M-step serves all
heads. Several iterations, and transport E-steps, run on the plain engine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fishergraph._checks import look_up
from fishergraph.em.learn import learn_family
from fishergraph.family import Family, GaussianMixture, choose_family
from fishergraph.family.diagonal_mixture import DiagonalMixtureTheta
from fishergraph.family.special import mean_length
from fishergraph.family.von_mises_fisher import VonMisesFisherTheta
from fishergraph.nn.mixture import Mixture
from fishergraph.ops import torch_plain
from fishergraph.ops.torch_iterations import Iteration
from fishergraph.ops.torch_kernels import choose_engine, work_type
from fishergraph.ops.torch_ops import attend
from fishergraph.ops.torch_sets import TensorSets
from fishergraph.ops.torch_transport import transport


class Chart(NamedTuple):
    """Coordinates of a family: how many blocks (anchor, feature) there are, θ of (log π, blocks), and the way back."""

    n_blocks: int
    theta: Callable[[Tensor, Tensor], Any]
    blocks: Callable[[Any], Tensor]
    start: Callable[[int], float]  # of the last block, by the number of features


def _diagonal_theta(log_weights: Tensor, blocks: Tensor) -> DiagonalMixtureTheta:
    return DiagonalMixtureTheta(log_weights, blocks[0], blocks[1].exp(), torch.zeros_like(blocks[0, 0]))


def _direction_theta(log_weights: Tensor, blocks: Tensor) -> VonMisesFisherTheta:
    """m = A(κ) u of the vectors κ u."""
    wide = blocks[0].double()
    kappa = torch.linalg.vector_norm(wide, dim=-1)
    means = mean_length(wide.shape[-1], kappa)[1][..., None] * wide
    return VonMisesFisherTheta(log_weights, means.to(blocks.dtype), kappa)


CHARTS = {
    "diagonal-mixture": Chart(
        2, _diagonal_theta, lambda theta: torch.stack([theta.means, theta.variances.log()]), lambda d: -math.log(d)
    ),
    "von-mises-fisher": Chart(
        1, _direction_theta, lambda theta: _natural(theta)[None], lambda d: 0.0
    ),
}  # fmt: skip


def _natural(theta: VonMisesFisherTheta) -> Tensor:
    return choose_family("von-mises-fisher").natural(theta)[0]


def make_mixture(in_channels: int, num_anchors: int, *, family: Any = "gaussian-mixture", **options: Any) -> Mixture:
    """The module of a family: `Mixture` for that of the paper, `FamilyMixture` for one with a chart."""
    chosen = choose_family(family)
    if chosen == GaussianMixture():
        return Mixture(in_channels, num_anchors, **options)
    return FamilyMixture(in_channels, num_anchors, family=chosen, **options)


class FamilyMixture(Mixture):
    """Densities of a family whose parameters are trained, and the embedding of multisets at them.

    `anchors` has the shape (block, head, anchor, feature), `bias` (head, anchor): the logits of the weights.
    """

    def __init__(self, in_channels: int, num_anchors: int, *, family: Family, **options: Any):
        if options.pop("mixture_bias", False):
            raise ValueError(
                f"the family {family.name!r} has weights of its own, got mixture_bias=True; leave mixture_bias=False."
            )
        if family.fisher != "approximate":
            raise ValueError(
                f"a module has the Fisher matrix in closed form, got fisher={family.fisher!r}; leave it 'approximate'."
            )
        steps = options.get("num_em_steps", 1)
        if family.tangent == "score" and steps > 1:
            raise ValueError(f"tangent='score' is a gradient at θ_0 and takes num_em_steps=1, got {steps}; leave it 1.")
        chart = look_up(CHARTS, family.name, "family of a module (or 'gaussian-mixture' without options)")
        self._chart_blocks = chart.n_blocks
        super().__init__(in_channels, num_anchors, mixture_bias=True, **options)
        self.family, self.chart = family, chart
        self.reset_parameters()

    def hold(self, name: str, shape: tuple[int, ...], in_channels: int) -> None:
        """Register the parameters, with an axis of blocks before the heads."""
        super().hold(name, (self._chart_blocks, *shape), in_channels)

    @property
    def out_channels(self) -> int:
        """The width of φ, all heads together; −1 while that of the input is not known."""
        if self.in_channels < 0:
            return -1
        own = self.family.width(self.num_anchors, self.in_channels)
        return self.heads * (own + self.num_anchors * self.counts)

    def reset_parameters(self) -> None:
        """Equal weights, means in random directions of about unit length, variances 1/d, concentrations √d."""
        if self.bias is not None:
            nn.init.zeros_(self.bias)
        if self.in_channels > 0 and hasattr(self, "chart"):
            spread = self.in_channels**-0.5 if self._chart_blocks > 1 else 1.0
            nn.init.normal_(self.anchors[0], std=spread)
            if self._chart_blocks > 1:
                nn.init.constant_(self.anchors[1], self.chart.start(self.in_channels))

    @torch.no_grad()
    def init_from_data(self, members: Tensor, rng: Any) -> None:
        """Give every head what EM learns from these members."""
        self.expect(members.shape[1])
        members = self.points(members).to(work_type(members.dtype))
        for h in range(self.heads):
            theta = learn_family(self.family, members, self.num_anchors, rng=rng)
            # Fewer distinct points than anchors: the others lie on top of them.
            again = torch.arange(self.num_anchors, device=members.device) % theta.log_weights.shape[0]
            self.anchors[:, h] = self.chart.blocks(theta)[:, again].to(self.anchors.dtype)
            self.bias[h] = theta.log_weights[again].to(self.bias.dtype)  # type: ignore[index]

    def theta(self, h: int, dtype: torch.dtype) -> Any:
        """θ_0 of one head."""
        assert self.bias is not None
        return self.chart.theta(F.log_softmax(self.bias[h].to(dtype), dim=0), self.anchors[:, h].to(dtype))

    def rows(self, x: Tensor) -> Tensor:
        """t(x) of every row, which the M-step averages, (row, statistic)."""
        points = self.points(x)
        return self.family.statistics(points.to(work_type(points.dtype)), self.theta(0, work_type(points.dtype)))

    def centres(self, dtype: torch.dtype) -> Tensor:
        """E[t] at θ_0 of all heads, (head · anchor, statistic)."""
        return torch.cat([self.family.mean_statistics(self.theta(h, dtype)) for h in range(self.heads)])

    def forward(self, x: Tensor, sets: TensorSets) -> Tensor:
        """φ of every set, (set, head · coordinate), with the soft counts (head · anchor) after it if wanted."""
        rows = self.rows(x)
        return self.embedded(*self._moments(rows, sets))

    def linear(self, x: Tensor, sets: TensorSets, weight: Tensor) -> Tensor:
        """weight · φ of every set, (set, out)."""
        phi = self(x, sets)
        return F.linear(phi, weight.to(phi.dtype))

    def embedded(self, means: Tensor, mass: Tensor) -> Tensor:
        """φ of the means of t, (set, head · anchor, statistic), and the masses, (set, head · anchor)."""
        parts, p = [], self.num_anchors
        for h in range(self.heads):
            own = slice(h * p, (h + 1) * p)
            theta = self.theta(h, means.dtype)
            parts.append(self.family.phi(means[:, own], mass[:, own].to(means.dtype), theta, prior=self.prior))
        return torch.cat([*parts, torch.log1p(mass).to(means.dtype)] if self.counts else parts, dim=1)

    def mass(self, x: Tensor, sets: TensorSets) -> Tensor:
        """Σ a α of the last E-step, (set, head · anchor)."""
        return self._moments(self.rows(x), sets)[1]

    def attention(self, x: Tensor, sets: TensorSets) -> Tensor:
        """What each entry of each set counts for each anchor, (entry, head · anchor), as in `Mixture`."""
        sets, rows = sets.cut(0, sets.n_sets), self.rows(x)
        return torch.cat([self._entry_shares(rows, sets, self._iterate(rows, sets, h)) for h in range(self.heads)], 1)

    def _moments(self, rows: Tensor, sets: TensorSets) -> tuple[Tensor, Tensor]:
        """The means of t and the masses of all heads."""
        known = self.centres(rows.dtype)
        if self.num_em_steps == 0:
            return known.expand(sets.n_sets, *known.shape), rows.new_zeros(sets.n_sets, known.shape[0])
        if self.num_em_steps == 1 and self.slack == math.inf:
            logs = torch.cat([self._first(rows, h) for h in range(self.heads)], dim=1)
            return attend(choose_engine(self.backend, rows), rows, logs, sets, known, prior=self.prior)
        sets, found = sets.cut(0, sets.n_sets), []
        for h in range(self.heads):
            last = None
            for last in self._iterate(rows, sets, h):  # noqa: B007
                pass
            assert last is not None
            found.append((last.means, last.mass))
        means, mass = zip(*found, strict=True)
        return torch.cat(means, dim=1), torch.cat(mass, dim=1)

    def _first(self, rows: Tensor, h: int) -> Tensor:
        """log α of every point at θ_0 of one head, (point, anchor)."""
        return F.log_softmax(self.family.scores(rows, self.theta(h, rows.dtype)), dim=1)

    def _iterate(self, rows: Tensor, sets: TensorSets, h: int) -> Iterator[Iteration]:
        """The iterations of one head on the plain engine; after the first, α belongs to the pair (set, point)."""
        theta = self.theta(h, rows.dtype)
        known, logs, by_entry = self.family.mean_statistics(theta), self._first(rows, h), self.slack < math.inf
        if by_entry:
            logs = transport(logs[sets.indices], sets.indptr, sets.weights, slack=self.slack)
        for left in reversed(range(self.num_em_steps)):
            found = torch_plain.attend(rows, logs, sets, known, self.prior, by_entry, True)
            yield Iteration(logs, by_entry, *found)
            if left:
                own = self.family.estimate(found[0], found[1], theta, self.prior)
                scores, by_entry = _entry_scores(rows, sets, *self.family.natural(own)), True
                posterior = self.slack == math.inf
                logs = F.log_softmax(scores, dim=1) if posterior else transport(
                    scores, sets.indptr, sets.weights, slack=self.slack
                )  # fmt: skip


def _entry_scores(rows: Tensor, sets: TensorSets, natural: Tensor, offsets: Tensor) -> Tensor:
    """⟨t_e, η_vj⟩ + c_vj of every entry e of every set v, (entry, anchor)."""
    members = rows[sets.indices.long()]
    columns = [(members * natural[sets.rows, j]).sum(dim=1) for j in range(natural.shape[1])]
    return torch.stack(columns, dim=1) + offsets[sets.rows]
