"""Multinomial regression on blocks of columns that have weights.

Every block is divided by its size first, so that a weight says how much a block counts beside the others:

    logits = Σ_b z_b W_b + intercept,    penalty Σ_b ‖W_b‖² / weight_b² / (2 C).

The regression runs on the principal axes of each block, which are computed once for all weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from fishergraph.probes.models import Linear
from fishergraph.probes.problem import Problem
from fishergraph.probes.soft import fit_soft

_STEPS = 200

Weights = Mapping[str, float]  # of blocks, by name; the others are left out


@dataclass(frozen=True, eq=False)
class BlockFit:
    """A fitted regression: coefficients (axis, class) of each block, and the intercept."""

    parts: dict[str, np.ndarray]
    intercept: np.ndarray

    def val_proba(self, problem: Problem) -> np.ndarray:
        """Class probabilities of the validation rows."""
        logits = sum(problem.axes[name].val @ W.astype(np.float32) for name, W in self.parts.items())
        return softmax((logits + self.intercept).astype(np.float64), axis=1)

    def linear(self, problem: Problem) -> Linear:
        """The same regression on the columns of the embedding."""
        theta = np.zeros((problem.Z.shape[1] + 1, problem.n_classes))
        theta[-1] = self.intercept
        for name, W in self.parts.items():
            block = problem.axes[name]
            coef = block.axes @ W / block.size
            theta[:-1][block.columns] = coef
            theta[-1] -= block.mean @ coef
        return Linear(theta)


def fit_blocks(problem: Problem, weights: Weights, C: float, start: BlockFit | None = None) -> BlockFit:
    """The regression of these weights, from the coefficients of another one."""
    used = [name for name in problem.axes if weights.get(name, 0.0) > 0]
    none = np.zeros((len(problem.train), 0), dtype=np.float32)  # if no block varies
    X = np.hstack([none, *(problem.axes[name].train * np.float32(weights[name]) for name in used)])
    theta = np.zeros((X.shape[1] + 1, problem.n_classes))
    ends = np.cumsum([0, *(problem.axes[name].train.shape[1] for name in used)])
    slices = {name: slice(*ends[k : k + 2]) for k, name in enumerate(used)}
    if start is not None:
        for name in start.parts.keys() & set(used):
            theta[slices[name]] = start.parts[name] / weights[name]
        theta[-1] = start.intercept
    theta = fit_soft(X, problem.targets, np.ones(len(X)), C, theta, max_iter=_STEPS)
    return BlockFit({name: weights[name] * theta[part] for name, part in slices.items()}, theta[-1])
