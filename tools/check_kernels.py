"""Every Triton kernel once, forward and backward, on small sets with a hub, an empty one and weights, short floats too.

compute-sanitizer --tool memcheck python tools/check_kernels.py      # PYTORCH_NO_CUDA_MEMORY_CACHING=1 sees more
TRITON_INTERPRET=1 python tools/check_kernels.py                     # without a GPU
"""

from __future__ import annotations

import math

import torch

from fishergraph.ops.iterate.torch import Steps, em_means
from fishergraph.ops.linear_head.torch import fisher_linear
from fishergraph.ops.posterior.torch import posterior
from fishergraph.ops.tensor_sets import TensorSets

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def main() -> None:
    torch.manual_seed(0)
    for n, d, p in ((50, 7, 3), (40, 513, 9), (60, 128, 8)):
        sizes = torch.randint(0, 6, (n,))
        sizes[3], sizes[5] = 300, 0
        indptr = torch.zeros(n + 1, dtype=torch.int64)
        indptr[1:] = sizes.cumsum(0)
        indices = torch.randint(0, n, (int(indptr[-1]),), dtype=torch.int32)
        sets = TensorSets(indptr.to(DEVICE), indices.to(DEVICE), None, n)
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            for weights in (None, torch.rand(len(indices), device=DEVICE)):
                x = torch.randn(n, d, device=DEVICE, dtype=dtype, requires_grad=True)
                check(x, p, sets, weights)
    print("done")


def check(x: torch.Tensor, p: int, sets: TensorSets, weights: torch.Tensor | None) -> None:
    """One and two iterations, transport, and a linear head, with the gradients of everything."""
    d = x.shape[1]
    w = torch.randn(p, d, device=DEVICE, requires_grad=True)
    head = torch.randn(16, p * d, device=DEVICE, requires_grad=True)
    edge = None if weights is None else weights.clone().requires_grad_()
    for n_iter, slack in ((1, math.inf), (2, math.inf), (1, 0.5)):
        steps = Steps(float(d), 0.1, n_iter, slack)
        means, mass = em_means(x, sets.weighted(edge), w, steps, engine="triton")
        torch.autograd.grad(means.sum() + mass.sum(), [x, w, *([] if edge is None else [edge])])
    logs = posterior("triton", x, w, float(d))
    z = fisher_linear("triton", x, logs, sets.weighted(weights), w, head.to(x.dtype), fisher_root=p**-0.5)
    torch.autograd.grad(z.sum(), (x, w, head))


if __name__ == "__main__":
    main()
