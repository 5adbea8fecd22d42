"""Other families as modules: their parameters in charts, and φ at them.

The points' statistics t(x) take the place of the points in the operators of the engine room: one M-step serves all
heads. Several iterations, and transport E-steps, run on the plain engine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fishergraph._validation import MOST_COLUMNS, check_integer, look_up
from fishergraph.em.learn import learn_family
from fishergraph.family import Family, GaussianMixture, choose_family
from fishergraph.nn.charts import CHARTS, Chart
from fishergraph.nn.mixture import Mixture
from fishergraph.ops.attend.torch import attend, plain_attend
from fishergraph.ops.iterate.torch import Iteration
from fishergraph.ops.tensor_ops import tensor_engine, work_type
from fishergraph.ops.tensor_sets import TensorSets
from fishergraph.ops.transport.torch import transport


def make_mixture(in_channels: int, num_anchors: int, *, family: Any = "gaussian-mixture", **options: Any) -> Mixture:
    """The module of a family: `Mixture` for that of the paper, `FamilyMixture` for one with a chart."""
    chosen = choose_family(family)
    if chosen == GaussianMixture():
        return Mixture(in_channels, num_anchors, **options)
    return FamilyMixture(in_channels, num_anchors, family=chosen, **options)


def _full_precision(method: Callable) -> Callable:
    """The method outside autocast: second moments and eigenvalues want more than short floats."""

    @wraps(method)
    def run(self: FamilyMixture, rows: Tensor, *rest: Any) -> Any:
        with torch.autocast(rows.device.type, enabled=False):
            return method(self, rows, *rest)

    return run


class FamilyMixture(Mixture):
    """Densities of a family whose parameters are trained, and the embedding of multisets at them.

    `anchors` has the shape (block, head, anchor, feature), `bias` (head, anchor): the logits of the weights, if it has
    any. The mean number of counts is a number that no gradient moves: `init_from_data` finds it, and it is kept with
    the state.
    """

    def __init__(self, in_channels: int, num_anchors: int, *, family: Family, **options: Any):
        if options.pop("mixture_bias", False):
            raise ValueError(
                f"mixture_bias belongs to the family 'gaussian-mixture', got it with {family.name!r}; leave it False."
            )
        if family.fisher != "approximate":
            raise ValueError(
                f"a module has the Fisher matrix in closed form, got fisher={family.fisher!r}; leave it 'approximate'."
            )
        steps = options.get("num_em_steps", 1)
        if family.tangent == "score" and steps > 1:
            raise ValueError(f"tangent='score' is a gradient at θ_0 and takes num_em_steps=1, got {steps}; leave it 1.")
        chart = look_up(CHARTS, family.name, "family of a module (or 'gaussian-mixture' without options)")
        self.family, self.trials = chart.trained(family), 1.0
        options["normalize"] = options.get("normalize", True) and family.support != "counts"
        weighted = "log_weights" in family.theta._fields  # type: ignore[attr-defined]
        components = family.n_components(check_integer(num_anchors, "num_anchors", least=1, most=MOST_COLUMNS))
        super().__init__(in_channels, components, mixture_bias=weighted, **options)

    @property
    def chart(self) -> Chart:
        """The coordinates of the parameters."""
        return CHARTS[self.family.name]

    def shape(self, in_channels: int) -> tuple[int, ...]:
        """The parameters' shape, with an axis of blocks before the heads."""
        self.family.check_width(in_channels)
        return (self.chart.n_blocks(in_channels), *super().shape(in_channels))

    @property
    def out_channels(self) -> int:
        """The width of φ, all heads together; −1 while that of the input is not known."""
        if self.in_channels < 0:
            return -1
        own = self.family.width(self.num_anchors, self.in_channels)
        return self.heads * (own + self.num_anchors * self.counts)

    def reset_parameters(self) -> None:
        """Equal weights, and what the chart starts at; a point is one count until data say how many."""
        if self.bias is not None:
            nn.init.zeros_(self.bias)
        if self.in_channels > 0:
            with torch.no_grad():
                self.chart.start(self.anchors)
            self.trials = 1.0

    @torch.no_grad()
    def init_from_data(self, members: Tensor, rng: Any) -> None:
        """Give every head what EM learns from these members."""
        self.expect(members.shape[1])
        members = self.points(members).to(work_type(members.dtype))
        for h in range(self.heads):
            theta = learn_family(self.family, members, self.num_anchors, rng=rng)
            blocks = self.chart.blocks(theta)
            # Fewer distinct points than anchors: the others lie on top of them.
            again = torch.arange(self.num_anchors, device=members.device) % blocks.shape[1]
            self.anchors[:, h] = blocks[:, again].to(self.anchors.dtype)
            if self.bias is not None:
                self.bias[h] = theta.log_weights[again].to(self.bias.dtype)
            self.trials = float(getattr(theta, "trials", 1.0))

    def theta(self, h: int, dtype: torch.dtype) -> Any:
        """θ_0 of one head."""
        log_weights = None if self.bias is None else F.log_softmax(self.bias[h].to(dtype), dim=0)
        return self.chart.theta(log_weights, self.anchors[:, h].to(dtype), self.trials)

    def points(self, x: Tensor) -> Tensor:
        """The points that EM sees, as in `Mixture`; counts as they are, none of them negative."""
        if self.family.support == "counts" and not torch.compiler.is_compiling():
            self.family.check_points(x, "x")
        return super().points(x)

    def rows(self, x: Tensor) -> Tensor:
        """t(x) of every row, which the M-step averages, (row, statistic)."""
        points = self.points(x)
        found = self.family.statistics(points.to(work_type(points.dtype)), self.theta(0, work_type(points.dtype)))
        # A direction of what is no number would be none, as that of a zero row.
        return found.masked_fill(~torch.isfinite(points.detach().sum(dim=1, keepdim=True)), torch.nan)

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

    @_full_precision
    def embedded(self, means: Tensor, mass: Tensor) -> Tensor:
        """φ of the means of t, (set, head · anchor, statistic), and the masses, (set, head · anchor)."""
        parts, p = [], self.num_anchors
        for h in range(self.heads):
            own = slice(h * p, (h + 1) * p)
            theta = self.theta(h, means.dtype)
            parts.append(self.family.phi(means[:, own], mass[:, own].to(means.dtype), theta, prior=self.prior))
        total = mass.sum(dim=1, keepdim=True).to(means.dtype)
        phi = [torch.where(total > 0, part, 0 * total) for part in parts]  # what is no number stays none
        return torch.cat([*phi, torch.log1p(mass).to(means.dtype)] if self.counts else phi, dim=1)

    def mass(self, x: Tensor, sets: TensorSets) -> Tensor:
        """Σ a α of the last E-step, (set, head · anchor)."""
        return self._moments(self.rows(x), sets)[1]

    def attention(self, x: Tensor, sets: TensorSets) -> Tensor:
        """What each entry of each set counts for each anchor, (entry, head · anchor), as in `Mixture`."""
        return self._shares(self.rows(x), sets.cut(0, sets.n_sets))

    @_full_precision
    def _shares(self, rows: Tensor, sets: TensorSets) -> Tensor:
        """The attention of all heads."""
        return torch.cat([self._entry_shares(rows, sets, self._iterate(rows, sets, h)) for h in range(self.heads)], 1)

    @_full_precision
    def _moments(self, rows: Tensor, sets: TensorSets) -> tuple[Tensor, Tensor]:
        """The means of t and the masses of all heads."""
        known = self.centres(rows.dtype)
        if self.num_em_steps == 0:
            return known.expand(sets.n_sets, *known.shape), rows.new_zeros(sets.n_sets, known.shape[0])
        if self.num_em_steps == 1 and self.slack == math.inf:
            logs = torch.cat([self._first(rows, h) for h in range(self.heads)], dim=1)
            return attend(tensor_engine(self.backend, rows), rows, logs, sets, known, prior=self.prior)
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
            found = plain_attend(rows, logs, sets, known, self.prior, by_entry, True)
            yield Iteration(logs, by_entry, *found)
            if left:
                own = self.family.estimate(found[0], found[1], theta, self.prior)
                scores, by_entry = _entry_scores(rows, sets, *self.family.natural(own)), True
                posterior = self.slack == math.inf
                logs = F.log_softmax(scores, dim=1) if posterior else transport(
                    scores, sets.indptr, sets.weights, slack=self.slack
                )  # fmt: skip

    def get_extra_state(self) -> Tensor:
        """The mean number of counts, which belongs to the words, as a tensor: files of tensors can keep it."""
        return torch.tensor(self.trials, dtype=torch.float64)

    def set_extra_state(self, state: Tensor) -> None:
        self.trials = float(state)


def _entry_scores(rows: Tensor, sets: TensorSets, natural: Tensor, offsets: Tensor) -> Tensor:
    """⟨t_e, η_vj⟩ + c_vj of every entry e of every set v, (entry, anchor)."""
    members = rows[sets.indices.long()]
    columns = [(members * natural[sets.rows, j]).sum(dim=1) for j in range(natural.shape[1])]
    return torch.stack(columns, dim=1) + offsets[sets.rows]
