"""Baselines that are features without training, and a probe: WWL, SGC, S²GC, SIGN, FIE.

With Ã = A + I, D̃ its degrees and S = D̃^-½ Ã D̃^-½, rows of X that are bags of words divided by their sums:

    WWL    X_{t+1} = ½ (X_t + D^-1 A X_t),      Z = [X_0 | … | X_T]       Togninalli et al. 2019, Eq. 4
    SGC    Z = S^K X                                                      Wu et al. 2019
    S²GC   Z = (1/K) Σ_{k=1…K} ((1 − α) S^k X + α X)                      Zhu and Koniusz 2021, Eq. 12
    SIGN   Z = [X | S X | … | S^r X]                                      Frasca et al. 2020, (r, 0, 0)
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler

from fishergraph._validation import check_flag, check_integer, check_number, look_up
from fishergraph.baselines.base import Baseline
from fishergraph.baselines.door import Task
from fishergraph.estimators import FisherEmbedding
from fishergraph.probes import PROBES
from fishergraph.structural import power_or_zero

MOST_STEPS = 10_000  # of a walk or an iteration over the whole graph


class Probed(Baseline):
    """Features of all nodes, and a probe on them.

    probe           a name of `PROBES`, "mlp", or an object with the calls of `LogisticProbe`
    probe_options   arguments of the named probe, for instance {"time_budget": 600}

    Fitted: `probe_`, on top of what every baseline has.
    """

    probe: Any
    probe_options: dict[str, Any] | None

    @abstractmethod
    def _features(self, task: Task, seed: int, progress: Any) -> np.ndarray:
        """The features, (node, feature), of all nodes; labels are not for it to see."""

    def _run(self, task: Task, seed: int, progress: Any) -> np.ndarray:
        probe = _probe(self.probe, self.probe_options, seed, progress)
        Z = self._features(task, seed, progress)
        self.probe_ = probe.fit(Z, task.codes, task.train, task.val)
        proba = np.zeros((task.n_nodes, len(task.classes)))
        proba[:, probe.classes_] = probe.predict_proba(Z)
        return proba


def _probe(probe: Any, options: dict[str, Any] | None, seed: int, progress: Any) -> Any:
    """The probe, seeded where it draws anything."""
    if not isinstance(probe, str) and hasattr(probe, "fit"):
        return probe
    kind = look_up({**PROBES, "mlp": _mlp_probe}, probe, "probe")
    given = dict(options or {})
    if probe != "logistic":
        given = {"random_state": seed, "verbose": progress, **given}
    return kind(**given)


def _mlp_probe(**options: Any) -> Any:
    from fishergraph.baselines.networks import MLPProbe  # needs torch

    return MLPProbe(**options)


class WWL(Probed):
    """The node features of the Wasserstein Weisfeiler–Leman kernel: n_iter averages with the neighbours, side by side.

    n_iter      T; the width is (T + 1) times that of X
    rows        divide rows of X by their sums; None does it where X has no negative entry
    columns     then give each column mean 0 and variance 1; with rows=False that is what the authors' code does
    """

    def __init__(
        self, n_iter: int = 4, *, rows: bool | None = None, columns: bool = False, probe: Any = "logistic",
        probe_options: dict[str, Any] | None = None,
    ):  # fmt: skip
        self.n_iter = n_iter
        self.rows = rows
        self.columns = columns
        self.probe = probe
        self.probe_options = probe_options

    def _features(self, task: Task, seed: int, progress: Any) -> np.ndarray:
        X = prepared_rows(task.X, self.rows)
        blocks = [StandardScaler().fit_transform(X) if check_flag(self.columns, "columns") else X]
        mean = sp.diags_array(power_or_zero(task.A.sum(axis=1), -1.0)) @ task.A
        for _ in range(check_integer(self.n_iter, "n_iter", least=0, most=MOST_STEPS)):
            blocks.append((blocks[-1] + mean @ blocks[-1]) / 2)
        return np.hstack(blocks)


class SGC(Probed):
    """Simple graph convolution: n_steps steps of smoothing. `rows` as in `WWL`."""

    def __init__(
        self, n_steps: int = 2, *, rows: bool | None = None, probe: Any = "logistic",
        probe_options: dict[str, Any] | None = None,
    ):  # fmt: skip
        self.n_steps = n_steps
        self.rows = rows
        self.probe = probe
        self.probe_options = probe_options

    def _features(self, task: Task, seed: int, progress: Any) -> np.ndarray:
        S, Z = smoother(task.A), prepared_rows(task.X, self.rows)
        for _ in range(check_integer(self.n_steps, "n_steps", least=0, most=MOST_STEPS)):
            Z = S @ Z
        return Z


class S2GC(Probed):
    """Simple spectral graph convolution: the mean of n_steps smoothings, each with a share `alpha` of X itself."""

    def __init__(
        self, n_steps: int = 16, alpha: float = 0.05, *, rows: bool | None = None, probe: Any = "logistic",
        probe_options: dict[str, Any] | None = None,
    ):  # fmt: skip
        self.n_steps = n_steps
        self.alpha = alpha
        self.rows = rows
        self.probe = probe
        self.probe_options = probe_options

    def _features(self, task: Task, seed: int, progress: Any) -> np.ndarray:
        n_steps = check_integer(self.n_steps, "n_steps", least=1, most=MOST_STEPS)
        alpha = check_number(self.alpha, "alpha", most=1.0)
        S, X = smoother(task.A), prepared_rows(task.X, self.rows)
        total, step = np.zeros_like(X), X
        for _ in range(n_steps):
            step = S @ step
            total += step
        return (1 - alpha) / n_steps * total + alpha * X


class SIGN(Probed):
    """Scalable inception: X and its n_steps smoothings side by side; on large graphs with probe="mlp", as its paper."""

    def __init__(
        self, n_steps: int = 3, *, rows: bool | None = None, probe: Any = "logistic",
        probe_options: dict[str, Any] | None = None,
    ):  # fmt: skip
        self.n_steps = n_steps
        self.rows = rows
        self.probe = probe
        self.probe_options = probe_options

    def _features(self, task: Task, seed: int, progress: Any) -> np.ndarray:
        S, blocks = smoother(task.A), [prepared_rows(task.X, self.rows)]
        for _ in range(check_integer(self.n_steps, "n_steps", least=0, most=MOST_STEPS)):
            blocks.append(S @ blocks[-1])
        return np.hstack(blocks)


class FIE(Probed):
    """Unsupervised `FisherEmbedding`; attention="reference" is the rule of the authors' code.

    options   other arguments of `FisherEmbedding`, for instance {"multiset": "ppr"}
    """

    def __init__(
        self, n_layers: int = 3, n_anchors: int = 4, dim: int = 256, *, attention: str = "posterior",
        bandwidth: float = 1.5, options: dict[str, Any] | None = None, probe: Any = "logistic",
        probe_options: dict[str, Any] | None = None,
    ):  # fmt: skip
        self.n_layers = n_layers
        self.n_anchors = n_anchors
        self.dim = dim
        self.attention = attention
        self.bandwidth = bandwidth
        self.options = options
        self.probe = probe
        self.probe_options = probe_options

    def _features(self, task: Task, seed: int, progress: Any) -> np.ndarray:
        return self.embedding(seed, verbose=progress).fit_transform(task.X, graph=task.A)

    def embedding(self, seed: int, **given: Any) -> FisherEmbedding:
        """The estimator of these settings; `options` go before what is given."""
        own = {
            "attention": self.attention,
            "bandwidth": self.bandwidth,
            "random_state": seed,
            "teleport": None,
            **given,
        }
        return FisherEmbedding(self.n_layers, self.n_anchors, self.dim, **{**own, **(self.options or {})})


# The mathematics.


def smoother(A: sp.csr_array) -> sp.csr_array:
    """S = D̃^-½ (A + I) D̃^-½; self-loops that A has already are not added to."""
    loops = sp.csr_array(sp.diags_array((A.diagonal() == 0).astype(A.dtype)))
    closed = A + loops
    root = sp.diags_array(power_or_zero(closed.sum(axis=1), -0.5))
    return sp.csr_array(root @ closed @ root)


def prepared_rows(X: Any, rows: bool | None) -> np.ndarray:
    """X dense, in rows that sum to one where `rows` says so; None: where no entry is negative."""
    X = X.toarray() if sp.issparse(X) else X
    if rows is None:
        rows = bool(X.min(initial=0.0) >= 0)
    return X * power_or_zero(X.sum(axis=1), -1.0)[:, None] if check_flag(rows, "rows (or None)") else X
