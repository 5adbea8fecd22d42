"""Every Triton kernel once, forward and backward, on small sets with a hub, an empty one and weights, short floats too.

compute-sanitizer --tool memcheck python tools/check_kernels.py      # PYTORCH_NO_CUDA_MEMORY_CACHING=1 sees more
python tools/check_kernels.py 3/12                                   # the third of twelve parts
TRITON_INTERPRET=1 python tools/check_kernels.py                     # without a GPU

The gradients are compared with those of the plain engine in float64.
"""

from __future__ import annotations

import math
import sys
from itertools import product

import torch

from fishergraph.ops.iterate.torch import Steps, em_means
from fishergraph.ops.linear_head.torch import fisher_linear
from fishergraph.ops.posterior.torch import posterior
from fishergraph.ops.tensor_sets import TensorSets

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SIZES = ((50, 7, 3), (40, 513, 9), (60, 128, 8), (40, 200, 8))
STEPS = ((1, math.inf), (3, math.inf), (2, 0.5))
# Rounding of a dtype, of sums over a hub of 300 members and of the softmax between.
ROUNDING = {torch.float32: 1e-4, torch.bfloat16: 0.1, torch.float16: 0.02}


def main() -> None:
    part, n_parts = map(int, sys.argv[1].split("/")) if len(sys.argv) > 1 else (1, 1)
    cases = list(product(SIZES, ROUNDING, (False, True)))
    for (n, d, p), dtype, weighted in cases[part - 1 :: n_parts]:
        torch.manual_seed(0)
        sizes = torch.randint(0, 6, (n,))
        sizes[3], sizes[5] = 300, 0
        indptr = torch.zeros(n + 1, dtype=torch.int64)
        indptr[1:] = sizes.cumsum(0)
        indices = torch.randint(0, n, (int(indptr[-1]),), dtype=torch.int32)
        sets = TensorSets(indptr.to(DEVICE), indices.to(DEVICE), None, n)
        weights = torch.rand(len(indices), device=DEVICE) if weighted else None
        x = torch.randn(n, d, device=DEVICE).to(dtype)
        check(x, p, sets, weights)
    print("done")


def check(x: torch.Tensor, p: int, sets: TensorSets, weights: torch.Tensor | None) -> None:
    """One and three iterations, transport, and a linear head, with the gradients of everything."""
    d, dtype = x.shape[1], x.dtype
    w = torch.randn(p, d, device=DEVICE)
    slopes = torch.randn(sets.n_sets, p, d, device=DEVICE).to(dtype)
    for (n_iter, slack), prior in product(STEPS, (0.0, 0.1)):
        steps = Steps(float(d), prior, n_iter, slack)
        ours = gradients("triton", (x, w, weights), sets, steps, slopes)
        wide = [None if tensor is None else tensor.double() for tensor in (x, w, weights)]
        known = gradients("torch", wide, sets, steps, slopes.double())
        for name, got, expected in zip(("means", "mass", "x", "w", "weights"), ours, known, strict=False):
            error = float((got.double() - expected).abs().max() / expected.abs().max().clamp(min=1))
            assert error < ROUNDING[dtype], f"{name}: {error:.1e} for {dtype}, d={d}, p={p}, {steps}"
    x, w = x.clone().requires_grad_(), w.requires_grad_()
    head = torch.randn(16, p * d, device=DEVICE).to(dtype).requires_grad_()
    logs = posterior("triton", x, w, float(d))
    z = fisher_linear("triton", x, logs, sets.weighted(weights), w, head, fisher_root=p**-0.5)
    torch.autograd.grad(z.sum(), (x, w, head))


def gradients(engine: str, inputs, sets: TensorSets, steps: Steps, slopes: torch.Tensor) -> list[torch.Tensor]:
    """Means, mass, and the gradients of ⟨means, slopes⟩ + Σ mass."""
    leaves = [None if tensor is None else tensor.clone().requires_grad_() for tensor in inputs]
    means, mass = em_means(leaves[0], sets.weighted(leaves[2]), leaves[1], steps, engine=engine)
    grads = torch.autograd.grad((means * slopes).sum() + mass.sum(), [leaf for leaf in leaves if leaf is not None])
    return [means.detach(), mass.detach(), *grads]


if __name__ == "__main__":
    main()
