"""Other families as modules: their parameters in charts, and φ at them.

The statistics t(x) replace the points in the operators, so that one M-step serves all heads. Several iterations, and
transport E-steps, run on the plain engine.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fishergraph._errors import InputError
from fishergraph._validation import check_flag, check_integer, look_up
from fishergraph.em.learn import learn_family
from fishergraph.em.settings import EM, choose_em
from fishergraph.family import Family, GaussianMixture, choose_family
from fishergraph.nn.charts import CHARTS, Chart
from fishergraph.nn.mixture import Mixture
from fishergraph.ops.attend.torch import attend, plain_attend
from fishergraph.ops.iterate.torch_steps import Iteration
from fishergraph.ops.tensor_ops import tensor_engine, work_type
from fishergraph.ops.tensor_sets import TensorSets
from fishergraph.ops.transport.torch import transport


def make_mixture(
    in_channels: int,
    num_anchors: int,
    *,
    family: str | Family = "gaussian-mixture",
    em: EM | None = None,
    heads: int = 1,
    normalize: bool = True,
    lifted: bool = False,
    counts: bool = False,
) -> Mixture:
    """The module of a family: `Mixture` for that of the paper, `FamilyMixture` for one with a chart.

    `normalize` divides rows by their lengths, unless they are counts; rows that are lifted are divided before.
    """
    chosen, steps, normalize = choose_family(family), choose_em(em), check_flag(normalize, "normalize")
    if steps.init == "spherical" and (lifted or not normalize):
        expected = "have another init than 'spherical' if points are not unit vectors"
        raise InputError(parameter="em", value=steps, expected=expected, advice="use init='kmeans'")
    options: dict[str, Any] = {"heads": heads, "counts": counts, "em": steps}
    if isinstance(chosen, GaussianMixture) and chosen.plain:
        return Mixture(in_channels, num_anchors, family=chosen, normalize=normalize and not lifted, **options)
    unit = normalize and not lifted and chosen.support != "counts"
    return FamilyMixture(in_channels, num_anchors, family=chosen, normalize=unit, **options)


def _full_precision(rows: Tensor) -> Any:
    """A block outside autocast: second moments and eigenvalues need more than half types."""
    return torch.autocast(rows.device.type, enabled=False)


class FamilyMixture(Mixture):
    """Densities of a family whose parameters are trained, and the embedding of multisets at them.

    `anchors` has the shape (block, head, anchor, feature), `bias` (head, anchor): the logits of the weights, if the
    family has any. The mean number of counts is not trained: `init_from_data` finds it, and it is part of the state.
    """

    learned = "trials"

    def __init__(self, in_channels: int, num_anchors: int, *, family: Family, em: EM, heads: int = 1, **options: Any):
        if family.fisher != "approximate":
            raise InputError(parameter="fisher", value=family.fisher, expected="be 'approximate' in a network")
        if family.tangent == "score" and em.n_iter > 1:
            expected = "have n_iter=1 with tangent='score', which is a gradient at θ_0"
            raise InputError(parameter="em", value=em, expected=expected)
        chart = look_up(CHARTS, family.name, "family of a network (or 'gaussian-mixture' with tangent='estimate')")
        self.weighted = "log_weights" in family.theta._fields  # type: ignore[attr-defined]
        components = family.n_components(check_integer(num_anchors, "num_anchors", least=1))
        super().__init__(in_channels, components, family=chart.trained(family), em=em, heads=heads, **options)

    def _prepare(self) -> None:
        """Set what is learned from data but not trained: the mean number of counts."""
        self.trials = 1.0

    @property
    def chart(self) -> Chart:
        """The coordinates of the parameters."""
        return CHARTS[self.family.name]

    def _shape(self, in_channels: int) -> tuple[int, ...]:
        """The shape of the parameters, with an axis of blocks before the heads."""
        self.family.check_width(in_channels)
        return (self.chart.n_blocks(in_channels), *super()._shape(in_channels))

    @property
    def out_channels(self) -> int:
        """The width of φ, all heads together; −1 while the width of the input is not known."""
        if self.in_channels < 0:
            return -1
        width = self.family.width(self.num_anchors, self.in_channels)
        return self.heads * (width + self.num_anchors * self.counts)

    def reset_parameters(self) -> None:
        """Set equal weights, and draw what the chart starts from."""
        if self.bias is not None:
            nn.init.zeros_(self.bias)
        if self.in_channels > 0:
            with torch.no_grad():
                self.chart.start(self.anchors)
            self.trials = 1.0

    @torch.no_grad()
    def init_from_data(self, members: Tensor, rng: Any) -> None:
        """Set every head to what EM learns from these members."""
        self.expect(members.shape[1])
        members = self.points(members)[1].to(work_type(members.dtype))
        for h in range(self.heads):
            theta = learn_family(self.family, members, self.num_anchors, rng=rng)
            blocks = self.chart.blocks(theta)
            # Fewer distinct points than anchors: the components repeat.
            repeated = torch.arange(self.num_anchors, device=members.device) % blocks.shape[1]
            self.anchors[:, h] = blocks[:, repeated].to(self.anchors.dtype)
            if self.bias is not None:
                self.bias[h] = theta.log_weights[repeated].to(self.bias.dtype)
            self.trials = float(getattr(theta, "trials", 1.0))

    def theta(self, h: int, dtype: torch.dtype) -> Any:
        """θ_0 of one head."""
        log_weights = None if self.bias is None else F.log_softmax(self.bias[h].to(dtype), dim=0)
        return self.chart.theta(log_weights, self.anchors[:, h].to(dtype), self.trials)

    def points(self, x: Tensor) -> tuple[str, Tensor]:
        """The engine and the points of EM, as in `Mixture`; counts must not be negative."""
        if self.family.support == "counts" and not torch.compiler.is_compiling():
            self.family.check_points(x, "x")
        return super().points(x)

    def statistics(self, x: Tensor) -> Tensor:
        """t(x) of every row, which the M-step averages, (row, statistic)."""
        points = self.points(x)[1]
        points = points.to(work_type(points.dtype))
        statistics = self.family.statistics(points, self.theta(0, points.dtype))
        # The direction of a row with NaN is zero, like that of a zero row: NaN must propagate.
        return statistics.masked_fill(~torch.isfinite(points.detach().sum(dim=1, keepdim=True)), torch.nan)

    def centres(self, dtype: torch.dtype) -> Tensor:
        """E[t] at θ_0 of all heads, (head · anchor, statistic)."""
        return torch.cat([self.family.mean_statistics(self.theta(h, dtype)) for h in range(self.heads)])

    def linear(self, x: Tensor, sets: TensorSets, weight: Tensor) -> Tensor:
        """weight · φ of every set, (set, out)."""
        phi = self(x, sets)
        return F.linear(phi, weight.to(phi.dtype))

    def embedded(self, means: Tensor, mass: Tensor) -> Tensor:
        """φ of the means of t, (set, head · anchor, statistic), and the masses, (set, head · anchor)."""
        parts, p = [], self.num_anchors
        with _full_precision(means):
            for h in range(self.heads):
                columns = slice(h * p, (h + 1) * p)
                masses, theta = mass[:, columns].to(means.dtype), self.theta(h, means.dtype)
                parts.append(self.family.phi(means[:, columns], masses, theta, prior=self.em.prior))
        total = mass.sum(dim=1, keepdim=True).to(means.dtype)
        phi = [torch.where(total > 0, part, 0 * total) for part in parts]  # NaN propagates
        return torch.cat([*phi, torch.log1p(mass).to(means.dtype)] if self.counts else phi, dim=1)

    def attended(self, x: Tensor, sets: TensorSets) -> tuple[Tensor, Tensor]:
        """The attention (entry, head · anchor), and the masses (set, head · anchor), as in `Mixture`."""
        rows, sets = self.statistics(x), sets.cut(0, sets.n_sets)
        with _full_precision(rows):
            heads = [self._entry_attention(rows, sets, self._iterate(rows, sets, h)) for h in range(self.heads)]
            attention, mass = zip(*heads, strict=True)
            return torch.cat(attention, dim=1), torch.cat(mass, dim=1)

    def _moments(self, x: Tensor, sets: TensorSets) -> tuple[Tensor, Tensor]:
        rows = self.statistics(x)
        with _full_precision(rows):
            return self._means_of(rows, sets)

    def _means_of(self, rows: Tensor, sets: TensorSets) -> tuple[Tensor, Tensor]:
        """The means of the statistics and the masses of all heads."""
        centres = self.centres(rows.dtype)
        if self.em.n_iter == 0:
            return centres.expand(sets.n_sets, *centres.shape), rows.new_zeros(sets.n_sets, centres.shape[0])
        if self.em.n_iter == 1 and self.slack == torch.inf:
            logs = torch.cat([self._first(rows, h) for h in range(self.heads)], dim=1)
            return attend(tensor_engine(None, rows), rows, logs, sets, centres, prior=self.em.prior)
        sets = sets.cut(0, sets.n_sets)
        last = [list(self._iterate(rows, sets, h))[-1] for h in range(self.heads)]
        return torch.cat([step.means for step in last], dim=1), torch.cat([step.mass for step in last], dim=1)

    def _first(self, rows: Tensor, h: int) -> Tensor:
        """log α of every point at θ_0 of one head, (point, anchor)."""
        return F.log_softmax(self.family.scores(rows, self.theta(h, rows.dtype)), dim=1)

    def _iterate(self, rows: Tensor, sets: TensorSets, h: int) -> Iterator[Iteration]:
        """The iterations of one head on the plain engine; after the first, α belongs to the pair (set, point)."""
        theta, prior, slack = self.theta(h, rows.dtype), self.em.prior, self.slack
        centres, logs, by_entry = self.family.mean_statistics(theta), self._first(rows, h), slack < torch.inf
        if by_entry:
            logs = transport(logs[sets.indices], sets.indptr, sets.weights, slack=slack)
        for left in reversed(range(self.em.n_iter)):
            step = Iteration(logs, by_entry, *plain_attend(rows, logs, sets, centres, prior, by_entry, True))
            yield step
            if left:
                estimate = self.family.estimate(step.means, step.mass, theta, prior)
                scores, by_entry = _entry_scores(rows, sets, *self.family.natural(estimate)), True
                if slack == torch.inf:
                    logs = F.log_softmax(scores, dim=1)
                else:
                    logs = transport(scores, sets.indptr, sets.weights, slack=slack)


def _entry_scores(rows: Tensor, sets: TensorSets, natural: Tensor, offsets: Tensor) -> Tensor:
    """⟨t_e, η_vj⟩ + c_vj of every entry e of every set v, (entry, anchor)."""
    members = rows[sets.indices.long()]
    columns = [(members * natural[sets.rows, j]).sum(dim=1) for j in range(natural.shape[1])]
    return torch.stack(columns, dim=1) + offsets[sets.rows]
