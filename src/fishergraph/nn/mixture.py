"""`Mixture`: what every Fisher module holds. Anchors as parameters, EM from them, φ (Eq. 17, 18)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fishergraph._errors import InputError
from fishergraph._validation import MOST_COLUMNS, check_flag, check_integer
from fishergraph.em.learn import fit_anchors
from fishergraph.em.settings import EM
from fishergraph.family import GaussianMixture
from fishergraph.family.base import Family
from fishergraph.family.gaussian_mixture import calibrate_variance
from fishergraph.nn.channels import LazyChannels, allocating, check_size
from fishergraph.ops.attend.torch import bounded
from fishergraph.ops.iterate.torch import OPERATIONS, em_means
from fishergraph.ops.iterate.torch_steps import Iteration, Steps, iterate
from fishergraph.ops.linear_head.torch import fisher_linear
from fishergraph.ops.posterior.torch import posterior
from fishergraph.ops.tensor_ops import tensor_engine, work_type
from fishergraph.ops.tensor_sets import TensorSets
from fishergraph.ops.unit_rows.torch import unit_rows


@dataclass(frozen=True, repr=False)
class WeightedMixture(GaussianMixture):
    """The Gaussian mixture of Eq. 16 with trained log-weights, for networks.

    Parameters
    ----------
    fisher, tangent, power, unit, variance, sharpness : options
        See `GaussianMixture`.

    See Also
    --------
    fishergraph.GaussianMixture : Equal weights.

    Examples
    --------
    >>> from fishergraph.nn import FisherConv, WeightedMixture
    >>> FisherConv(16, 8, family=WeightedMixture(variance=0.5)).mixture.bias.shape
    torch.Size([1, 4])
    """

    weighted: ClassVar[bool] = True

    def at_centres(self, centres: Any, members: Any) -> Any:
        """Raise: estimators have no trained weights."""
        expected, advice = "be a family of estimators, which do not train weights", "use DiagonalMixture"
        raise InputError(parameter="family", value=self, expected=expected, advice=advice)


class Mixture(LazyChannels):
    """Gaussian mixtures whose means are parameters, and the embedding of multisets at them.

    `anchors` has the shape (head, anchor, feature): every head is a mixture of its own. The variance is not trained:
    `init_from_data` calibrates it, and it is part of the state.
    """

    anchors: nn.Parameter
    bias: nn.Parameter | None
    weighted = False  # whether components have log-weights
    learned = "variance"  # the attribute that is learned from data but not trained

    def __init__(
        self,
        in_channels: int,
        num_anchors: int,
        *,
        family: Family,
        em: EM,
        heads: int = 1,
        normalize: bool = True,
        counts: bool = False,
    ):
        super().__init__()
        self.family: Any = family
        self.em, self.slack = em, em.slack
        self.num_anchors = check_integer(num_anchors, "num_anchors", least=1, most=MOST_COLUMNS)
        self.heads = check_integer(heads, "heads", least=1)
        self.normalize = check_flag(normalize, "normalize")
        self.counts = check_flag(counts, "counts")
        check_size((heads, num_anchors))
        has_weights = self.weighted or getattr(family, "weighted", False)
        with allocating((heads, num_anchors)):
            self.bias = nn.Parameter(torch.zeros(heads, num_anchors)) if has_weights else None
        self._prepare()
        self._hold("anchors", (heads, num_anchors), in_channels)
        self.reset_parameters()

    def _prepare(self) -> None:
        """Set what is learned from data but not trained: the variance."""
        self.variance = 1.0 if isinstance(self.family.variance, str) else float(self.family.variance)

    @property
    def out_channels(self) -> int:
        """The width of φ, all heads together; −1 while the width of the input is not known."""
        if self.in_channels < 0:
            return -1
        return self.heads * self.num_anchors * (self.in_channels + self.counts)

    def reset_parameters(self) -> None:
        """Draw anchors of about unit length; with variance "auto" the scores have about unit spread."""
        if self.bias is not None:
            nn.init.zeros_(self.bias)
        if self.in_channels > 0:
            nn.init.normal_(self.anchors, std=self.in_channels**-0.5)
            if isinstance(self.family.variance, str):
                self.variance = self.in_channels**-0.5

    @torch.no_grad()
    def init_from_data(self, members: Tensor, rng: Any) -> None:
        """Set the anchors of every head to centres of these members, and calibrate the variance."""
        self.expect(members.shape[1])
        members = self.points(members)[1].to(work_type(members.dtype))
        for anchors in self.anchors:
            centres = fit_anchors(members, self.num_anchors, method=self.em.init, rng=rng).to(anchors.dtype)
            # Fewer distinct points than anchors: the centres repeat.
            anchors.copy_(centres[torch.arange(self.num_anchors, device=centres.device) % len(centres)])
        if isinstance(self.family.variance, str):
            anchors = self.anchors[0].to(members.dtype)
            self.variance = calibrate_variance(members, anchors, self.family.sharpness)

    def points(self, x: Tensor) -> tuple[str, Tensor]:
        """The engine of a forward pass, and the points of EM: x, or its rows divided by their lengths."""
        if x.device.type == "cpu" or torch.is_autocast_enabled(x.device.type):
            x = x.to(torch.promote_types(x.dtype, torch.float32))  # autocast gives half types, too short for lengths
        engine = tensor_engine(None, x)
        return engine, unit_rows(engine, x) if self.normalize else x

    def forward(self, x: Tensor, sets: TensorSets) -> Tensor:
        """φ of every set, (set, head · anchor · feature), followed by the soft counts (head · anchor) if wanted."""
        return self.embedded(*self._moments(x, sets))

    def linear(self, x: Tensor, sets: TensorSets, weight: Tensor) -> Tensor:
        """weight · φ of every set, (set, out). If one operator computes both, φ is not stored."""
        if self.em.n_iter != 1 or self.slack < torch.inf or self.counts:
            phi = self(x, sets)
            return F.linear(phi, weight.to(phi.dtype))
        engine, points = self.points(x)
        dtype = torch.promote_types(points.dtype, torch.float32)
        anchors, bias = self.anchors.to(dtype), [None] * self.heads if self.bias is None else self.bias.to(dtype)
        # One M-step serves all heads: it takes the columns of α one by one.
        logs = []
        for w, b in zip(anchors, bias, strict=True):
            logs.append(posterior(engine, points, w, self.variance, b))
        columns = logs[0] if self.heads == 1 else torch.cat(logs, dim=1)
        weight, root = weight.to(points.dtype), self.num_anchors**-0.5
        anchors, prior = anchors.flatten(0, 1), self.em.prior
        return fisher_linear(engine, points, columns, sets, anchors, weight, fisher_root=root, prior=prior)

    def attention(self, x: Tensor, sets: TensorSets) -> Tensor:
        """The attention of each entry for each anchor, (entry, head · anchor): a_vu α_uj over its sum and κ.

        Columns sum to one over a set, less the coefficient of the prior.
        """
        return self.attended(x, sets)[0]

    def attended(self, x: Tensor, sets: TensorSets) -> tuple[Tensor, Tensor]:
        """The attention, and the masses (set, head · anchor), with gradients. Only explanations need this table."""
        points = self.points(x)[1]
        # A single M-step is asked for its masses alone: its means have no columns.
        columns = slice(None) if self.em.n_iter > 1 else slice(0)
        sets, parts = sets.cut(0, sets.n_sets), []
        for h in range(self.heads):
            anchors, _, bias = self._head(h, points)
            logs = posterior("torch", points, anchors, self.variance, bias)
            rows, centres = points[:, columns], anchors[:, columns]
            iterations = iterate(OPERATIONS, rows, logs, sets, centres, self._steps(), bias)
            parts.append(self._entry_attention(points, sets, iterations))
        attention, mass = zip(*parts, strict=True)
        return torch.cat(attention, dim=1), torch.cat(mass, dim=1)

    def _entry_attention(
        self, points: Tensor, sets: TensorSets, iterations: Iterator[Iteration]
    ) -> tuple[Tensor, Tensor]:
        """The attention (entry, anchor) and the masses (set, anchor) of one head after the last of these iterations."""
        last = None
        for last in iterations:  # noqa: B007
            pass
        if last is None:
            zeros = torch.zeros(sets.n_entries, self.num_anchors, dtype=work_type(points.dtype), device=points.device)
            return zeros, zeros.new_zeros(sets.n_sets, self.num_anchors)
        logs = last.logs if last.by_entry else last.logs[sets.indices]
        total = last.log_total[sets.rows]
        empty = total == -torch.inf
        # The gradient of exp(∞) is NaN, even if its value is not used.
        attention = torch.where(empty, 0.0, torch.exp(bounded(logs - torch.where(empty, 0.0, total))))
        return attention if sets.weights is None else attention * sets.weights[:, None], last.mass

    def statistics(self, x: Tensor) -> Tensor:
        """What the M-step averages: the points, (row, feature)."""
        return self.points(x)[1]

    def centres(self, dtype: torch.dtype) -> Tensor:
        """The means at θ_0 of what the M-step averages: the anchors of all heads, (head · anchor, feature)."""
        return self.anchors.flatten(0, 1).to(dtype)

    def embedded(self, means: Tensor, mass: Tensor) -> Tensor:
        """φ of the means, (set, head · anchor, feature), and the masses, (set, head · anchor)."""
        phi = (self.num_anchors**-0.5 * (means - self.centres(means.dtype))).flatten(1)
        return torch.cat([phi, torch.log1p(mass).to(phi.dtype)], dim=1) if self.counts else phi

    def _moments(self, x: Tensor, sets: TensorSets) -> tuple[Tensor, Tensor]:
        """Means (set, head · anchor, feature) and masses (set, head · anchor)."""
        engine, points = self.points(x)
        moments = []
        for h in range(self.heads):
            anchors, _, bias = self._head(h, points)
            moments.append(em_means(points, sets, anchors, self._steps(), bias=bias, engine=engine))
        if self.heads == 1:
            return moments[0]
        means, mass = zip(*moments, strict=True)
        return torch.cat(means, dim=1), torch.cat(mass, dim=1)

    def _head(self, h: int, points: Tensor) -> tuple[Tensor, float, Tensor | None]:
        """The anchors, the variance and the log-weights of one head, in the dtype of sums over the points."""
        dtype = torch.promote_types(points.dtype, torch.float32)
        return self.anchors[h].to(dtype), self.variance, None if self.bias is None else self.bias[h].to(dtype)

    def _steps(self) -> Steps:
        return Steps(self.variance, self.em.prior, self.em.n_iter, self.slack)

    def get_extra_state(self) -> Tensor:
        """What is learned but not trained as a tensor, so that files of tensors can hold it."""
        return torch.tensor(getattr(self, self.learned), dtype=torch.float64)

    def set_extra_state(self, state: Tensor) -> None:
        setattr(self, self.learned, float(state))

    def extra_repr(self) -> str:
        return f"{self.in_channels}, num_anchors={self.num_anchors}, heads={self.heads}"
