"""The part that every Fisher module shares: anchors as parameters, EM from them, φ (Eq. 17, 18)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fishergraph._arrays import check_in_range
from fishergraph._validation import MOST_ITERATIONS, check_flag, check_integer, check_number
from fishergraph.em.anchors import calibrate_variance, learn_anchors
from fishergraph.em.e_step import e_step_slack
from fishergraph.family import fisher_root
from fishergraph.nn.lazy import LazyChannels, check_numbers
from fishergraph.ops.iterate.torch import Iteration, Steps, em_means, iterate
from fishergraph.ops.linear_head.torch import fisher_linear
from fishergraph.ops.posterior.torch import posterior
from fishergraph.ops.tensor_ops import tensor_engine, tensor_ops, work_type
from fishergraph.ops.tensor_sets import TensorSets
from fishergraph.ops.unit_rows.torch import unit_rows


class Mixture(LazyChannels):
    """Gaussian mixtures whose means are parameters, and the embedding of multisets at them.

    `anchors` has the shape (head, anchor, feature): every head is a mixture of its own. The variance is a number that
    no gradient moves: `init_from_data` calibrates it, and it is kept with the state.
    """

    anchors: nn.Parameter
    bias: nn.Parameter | None

    def __init__(
        self, in_channels: int, num_anchors: int, *, heads: int = 1, num_em_steps: int = 1,
        variance: float | str = "auto", sharpness: float = 0.9, prior: float = 0.0, e_step: str = "posterior",
        column_penalty: float = 1.0, normalize: bool = True, mixture_bias: bool = False, counts: bool = False,
        backend: str | None = None,
    ):  # fmt: skip
        super().__init__()
        self.num_anchors = check_integer(num_anchors, "num_anchors", least=1)
        self.heads = check_integer(heads, "heads", least=1)
        self.num_em_steps = check_integer(num_em_steps, "num_em_steps", least=0, most=MOST_ITERATIONS)
        self.calibrated = isinstance(variance, str) and variance == "auto"
        self.variance = 1.0 if self.calibrated else _in_range(variance, "variance (or 'auto')", strict=True)
        self.sharpness = check_number(sharpness, "sharpness", strict=True, most=1.0)
        self.prior = _in_range(prior, "prior")
        self.slack = e_step_slack(e_step, column_penalty)
        self.normalize = check_flag(normalize, "normalize")
        self.counts = check_flag(counts, "counts")
        self.backend = backend
        check_numbers((heads, num_anchors))
        self.bias = nn.Parameter(torch.zeros(heads, num_anchors)) if mixture_bias else None
        self.hold("anchors", (heads, num_anchors), in_channels)
        self.reset_parameters()

    @property
    def out_channels(self) -> int:
        """The width of φ, all heads together; −1 while that of the input is not known."""
        if self.in_channels < 0:
            return -1
        return self.heads * self.num_anchors * (self.in_channels + self.counts)

    def reset_parameters(self) -> None:
        """Anchors in random directions, of about unit length; with variance "auto" scores of about unit spread."""
        if self.bias is not None:
            nn.init.zeros_(self.bias)
        if self.in_channels > 0:
            nn.init.normal_(self.anchors, std=self.in_channels**-0.5)
            if self.calibrated:
                self.variance = self.in_channels**-0.5

    @torch.no_grad()
    def init_from_data(self, members: Tensor, rng: Any) -> None:
        """Put the anchors of every head at k-means centres of these members, and calibrate the variance."""
        self.expect(members.shape[1])
        members = self.points(members).to(work_type(members.dtype))
        for anchors in self.anchors:
            found = learn_anchors(members, self.num_anchors, rng=rng).to(anchors.dtype)
            # Fewer distinct points than anchors: the others lie on top of them.
            anchors.copy_(found[torch.arange(self.num_anchors, device=found.device) % len(found)])
        if self.calibrated:
            self.variance = calibrate_variance(members, self.anchors[0].to(members.dtype), self.sharpness)

    def points(self, x: Tensor) -> Tensor:
        """The points that EM sees: x, or its rows divided by their lengths."""
        if x.device.type == "cpu" or torch.is_autocast_enabled(x.device.type):
            x = x.to(work_type(x.dtype))  # lengths want more than the short floats that autocast makes
        return unit_rows(tensor_engine(self.backend, x), x) if self.normalize else x

    def forward(self, x: Tensor, sets: TensorSets) -> Tensor:
        """φ of every set, (set, head · anchor · feature), with the soft counts (head · anchor) after it if wanted."""
        points = self.points(x)
        found = [self._means(points, sets, h) for h in range(self.heads)]
        means, mass = (torch.cat(part, dim=1) for part in zip(*found, strict=True))  # (set, head · anchor, …)
        return self.embedded(means, mass)

    def linear(self, x: Tensor, sets: TensorSets, weight: Tensor) -> Tensor:
        """weight · φ of every set, (set, out). Where one operator makes both, φ is not stored."""
        if self.num_em_steps != 1 or self.slack < math.inf or self.counts:
            phi = self(x, sets)
            return F.linear(phi, weight.to(phi.dtype))
        points = self.points(x)
        engine = tensor_engine(self.backend, points)
        # One M-step serves all heads: it takes the columns of α one by one.
        logs = torch.cat([self._logs(engine, points, h) for h in range(self.heads)], dim=1)
        return fisher_linear(
            engine, points, logs, sets, self._flat(logs.dtype), weight.to(points.dtype),
            fisher_root=fisher_root(self.num_anchors), prior=self.prior,
        )  # fmt: skip

    def attention(self, x: Tensor, sets: TensorSets) -> Tensor:
        """What each entry of each set counts for each anchor, (entry, head · anchor): a_vu α_uj over its sum and κ.

        Columns sum to one over a set, less the share of the prior. This table is made for explanations alone.
        """
        points, parts = self.points(x), []
        sets = sets.cut(0, sets.n_sets)
        for h in range(self.heads):
            anchors, steps, bias = self._mixture(h, points)
            logs = self._logs("torch", points, h)
            iterations = iterate(tensor_ops("torch"), points, logs, sets, anchors, steps, bias)
            parts.append(self._entry_shares(points, sets, iterations))
        return torch.cat(parts, dim=1)

    def _entry_shares(self, points: Tensor, sets: TensorSets, iterations: Iterator[Iteration]) -> Tensor:
        """The attention of one head after the last of these iterations, (entry, anchor)."""
        last = None
        for last in iterations:  # noqa: B007
            pass
        if last is None:  # no iteration: nothing is attended to
            return torch.zeros(sets.n_entries, self.num_anchors, dtype=work_type(points.dtype), device=points.device)
        known = last.logs if last.by_entry else last.logs[sets.indices]
        total = last.log_total[sets.rows]
        share = torch.where(total == -torch.inf, 0.0, torch.exp(known - total))
        return share if sets.weights is None else share * sets.weights[:, None]

    def rows(self, x: Tensor) -> Tensor:
        """What the M-step averages: the points, (row, feature)."""
        return self.points(x)

    def centres(self, dtype: torch.dtype) -> Tensor:
        """The means at θ_0 of what the M-step averages: the anchors of all heads, (head · anchor, feature)."""
        return self._flat(dtype)

    def embedded(self, means: Tensor, mass: Tensor) -> Tensor:
        """φ of the means, (set, head · anchor, feature), and the masses, (set, head · anchor)."""
        phi = (fisher_root(self.num_anchors) * (means - self._flat(means.dtype))).flatten(1)
        return torch.cat([phi, torch.log1p(mass).to(phi.dtype)], dim=1) if self.counts else phi

    def mass(self, x: Tensor, sets: TensorSets) -> Tensor:
        """Σ a α of the last E-step, (set, head · anchor)."""
        points = self.points(x)
        return torch.cat([self._means(points, sets, h)[1] for h in range(self.heads)], dim=1)

    def _means(self, points: Tensor, sets: TensorSets, h: int) -> tuple[Tensor, Tensor]:
        anchors, steps, bias = self._mixture(h, points)
        return em_means(points, sets, anchors, steps, bias=bias, engine=self.backend)

    def _logs(self, engine: str, points: Tensor, h: int) -> Tensor:
        anchors, _, bias = self._mixture(h, points)
        return posterior(engine, points, anchors, self.variance, bias)

    def _mixture(self, h: int, points: Tensor) -> tuple[Tensor, Steps, Tensor | None]:
        """What EM is told of one head: its anchors, the iterations, and the log-weights of its components."""
        kind = work_type(points.dtype)
        steps = Steps(self.variance, self.prior, self.num_em_steps, self.slack)
        return self.anchors[h].to(kind), steps, None if self.bias is None else self.bias[h].to(kind)

    def _flat(self, dtype: torch.dtype) -> Tensor:
        """The anchors of all heads, (head · anchor, feature)."""
        return self.anchors.flatten(0, 1).to(dtype)

    def get_extra_state(self) -> Tensor:
        """The variance, which belongs to the anchors, as a tensor: files of tensors can keep it."""
        return torch.tensor(self.variance, dtype=torch.float64)

    def set_extra_state(self, state: Tensor) -> None:
        self.variance = float(state)

    def extra_repr(self) -> str:
        return f"{self.in_channels}, num_anchors={self.num_anchors}, heads={self.heads}"


def _in_range(value: Any, name: str, **bounds: Any) -> float:
    """A number that float32 holds: modules may be moved to it."""
    return check_in_range(check_number(value, name, **bounds), "float32", name)
