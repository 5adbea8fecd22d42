"""The same bits at any number of BLAS threads, for everything public that multiplies or decomposes matrices."""

from __future__ import annotations

import json
import os
import subprocess
import sys

SCRIPT = """
import hashlib, json
import numpy as np, scipy.sparse as sp
import fishergraph as fg
from fishergraph.family import DiagonalMixture, exact_root
from fishergraph.probes import LogisticProbe

rng = np.random.default_rng(0)

def digest(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]

def ring(n):
    ends = rng.integers(n, size=(2, 4 * n))
    return sp.csr_array(sp.coo_array((np.ones(4 * n), tuple(ends)), shape=(n, n)))

found = {}
for n in (500, 1500):
    found[f"spectral {n}"] = digest(fg.structural_features(ring(n), "spectral", dim=64, seed=0))
X = rng.normal(size=(3000, 100))
theta = fg.learn_family(fg.Gaussian(), X, 1, rng=0)
found["covariance"] = digest(theta.covariances)
found["anchors"] = digest(fg.learn_anchors(X, 40, method="em", rng=0))
small = fg.learn_family(DiagonalMixture(), X[:, :20], 8, rng=0)
found["exact root"] = digest(exact_root(DiagonalMixture(fisher="exact"), small, np.random.default_rng(0)))
means = rng.normal(size=(600, 8, 40))
found["kernel"] = digest(fg.tangent_kernel(means, means[:300], means[0]))
probe = LogisticProbe(Cs=[1.0], max_iter=20).fit(X, np.arange(3000) % 3, np.arange(500), np.arange(500, 600))
found["probe"] = digest(probe.decision_function(X))
print(json.dumps(found))
"""


def _digests(threads: int) -> dict[str, str]:
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(names, str(threads))}
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT]
    return json.loads(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


def test_bits_do_not_depend_on_the_threads_of_blas():
    assert _digests(1) == _digests(2)
