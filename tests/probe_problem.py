"""A small problem for the heads of `GraphProbe`."""

import numpy as np
import scipy.sparse as sp


def problem(n=240, n_classes=3, noise=2.0, seed=0):
    """A noisy embedding of two blocks, labels, and a graph whose edges mostly join equal labels."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    same = y[:, None] == y[None, :]
    A = np.triu(rng.random((n, n)) < np.where(same, 0.05, 0.01), 1).astype(float)
    Z = rng.normal(size=(n_classes, 12))[y] + noise * rng.normal(size=(n, 12))
    return Z, y, sp.csr_array(A + A.T), np.arange(30), np.arange(30, 120)
