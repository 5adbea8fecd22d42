"""Every Triton kernel, forward and backward, on sets of every kind that kernels tell apart, short floats too.

compute-sanitizer --tool memcheck python tools/check_kernels.py      # PYTORCH_NO_CUDA_MEMORY_CACHING=1 sees more
python tools/check_kernels.py 3/12                                   # the third of twelve parts
TRITON_INTERPRET=1 python tools/check_kernels.py                     # without a GPU

Small sets with a hub, an empty one and weights; sets whose mean is large, which are cut into longer parts; sets of more
than 4,096 and of more than 65,536 members; unit rows alone; and, on a GPU alone, epochs captured as CUDA graphs.
Results and gradients are compared with the plain engine in float64, captured epochs with those that are not.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

import torch

from fishergraph.ops.iterate.torch import Steps, em_means
from fishergraph.ops.linear_head.torch import fisher_linear
from fishergraph.ops.posterior.torch import posterior
from fishergraph.ops.tensor_sets import LARGE, LARGE_MEAN, LONG, TensorSets
from fishergraph.ops.unit_rows.torch import unit_rows

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SIZES = ((50, 7, 3), (40, 513, 9), (60, 128, 8), (40, 200, 8))
STEPS = tuple(product(((1, math.inf), (3, math.inf), (2, 0.5)), (0.0, 0.1)))
# Rounding of a dtype, of sums over a hub of 300 members and of the softmax between.
ROUNDING = {torch.float32: 1e-4, torch.bfloat16: 0.1, torch.float16: 0.02}


def main() -> None:
    part, n_parts = map(int, sys.argv[1].split("/")) if len(sys.argv) > 1 else (1, 1)
    for case in list(cases())[part - 1 :: n_parts]:
        torch.manual_seed(0)
        case()
    print("done")


def cases() -> Iterator[Callable[[], None]]:
    """All checks, small ones first."""
    for (n, d, p), dtype, weighted in product(SIZES, ROUNDING, (False, True)):
        yield partial(check_sets, n, d, p, dtype, weighted, few)
    for dtype, weighted in product(ROUNDING, (False, True)):
        yield partial(check_sets, 20, 33, 3, dtype, weighted, many)
    for dtype, d in product(ROUNDING, (7, 256, 1100)):
        yield partial(check_unit_rows, dtype, d)
    for dtype in ROUNDING:
        yield partial(check_sets, 20, 33, 3, dtype, True, large, STEPS[:1])
        yield partial(check_sets, 30, 16, 2, dtype, False, very_large, STEPS[:1])
    if DEVICE == "cuda":
        for head in ("nystrom", "relu"):
            yield partial(check_capture, head)


def few(n: int) -> torch.Tensor:
    """Sizes of small sets, with a hub and an empty one."""
    sizes = torch.randint(0, 6, (n,))
    sizes[3], sizes[5] = 300, 0
    return sizes


def many(n: int) -> torch.Tensor:
    """Sizes whose mean is large, with a hub: its parts are as long as four mean sets."""
    sizes = torch.randint(LARGE_MEAN + 6, 2 * LARGE_MEAN, (n,))
    sizes[3], sizes[5] = 700, 0
    return sizes


def large(n: int) -> torch.Tensor:
    """The same with a set that is cut into short parts again."""
    sizes = many(n)
    sizes[4] = LARGE + 77
    return sizes


def very_large(n: int) -> torch.Tensor:
    """The same with a set that is cut finer."""
    sizes = many(n)
    sizes[4] = LONG + 77
    return sizes


def check_sets(n: int, d: int, p: int, dtype: torch.dtype, weighted: bool, sizes_of: Callable, steps=STEPS) -> None:
    """EM, transport and a linear head on random sets of these sizes, with the gradients of everything."""
    indptr = torch.zeros(n + 1, dtype=torch.int64)
    indptr[1:] = sizes_of(n).cumsum(0)
    indices = torch.randint(0, n, (int(indptr[-1]),), dtype=torch.int32)
    sets = TensorSets(indptr.to(DEVICE), indices.to(DEVICE), None, n)
    weights = torch.rand(len(indices), device=DEVICE) if weighted else None
    x, w = torch.randn(n, d, device=DEVICE).to(dtype), torch.randn(p, d, device=DEVICE)
    # One slope for all masses would have a gradient of zero, left over from terms as large as a set.
    slopes, of_mass = torch.randn(n, p, d, device=DEVICE).to(dtype), torch.randn(n, p, device=DEVICE)
    wide = [None if tensor is None else tensor.double() for tensor in (x, w, weights)]
    for (n_iter, slack), prior in steps:
        settings = Steps(float(d), prior, n_iter, slack)
        ours = gradients("triton", (x, w, weights), sets, settings, slopes, of_mass)
        known = gradients("torch", wide, sets, settings, slopes.double(), of_mass.double())
        for name, got, expected in zip(("means", "mass", "x", "w", "weights"), ours, known, strict=False):
            compare(f"{name} of {sizes_of.__name__} members, d={d}, p={p}, {settings}", got, expected, dtype)
    x, w = x.clone().requires_grad_(), w.requires_grad_()
    head = torch.randn(16, p * d, device=DEVICE).to(dtype).requires_grad_()
    logs = posterior("triton", x, w, float(d))
    z = fisher_linear("triton", x, logs, sets.weighted(weights), w, head, fisher_root=p**-0.5)
    torch.autograd.grad(z.sum(), (x, w, head))


def compare(name: str, got: torch.Tensor, expected: torch.Tensor, dtype: torch.dtype) -> None:
    """Raise unless the largest error is within the rounding of the points' dtype; NaN is not."""
    error = float((got.double() - expected).abs().max() / expected.abs().max().clamp(min=1))
    if not error < ROUNDING[dtype]:
        raise AssertionError(f"{name}: {error:.1e} for {dtype}")


def check_unit_rows(dtype: torch.dtype, d: int) -> None:
    """Unit rows and their gradient, of a zero row and of rows whose squares overflow and vanish too."""
    x = torch.randn(70, d, device=DEVICE)
    x[3] = 0
    if dtype != torch.float16:
        x[4], x[5] = 1e25 * x[4], 1e-25 * x[5]
    x = x.to(dtype).requires_grad_()
    slopes = torch.randn(70, d, device=DEVICE)
    wide = x.detach().double().requires_grad_()
    units, known = unit_rows("triton", x), unit_rows("torch", wide)
    compare(f"unit rows, d={d}", units.detach(), known.detach(), dtype)
    ordinary = torch.arange(70, device=DEVICE) > 5
    (grad,) = torch.autograd.grad(units, x, slopes.to(dtype))
    (expected,) = torch.autograd.grad(known, wide, slopes.to(dtype).double())
    compare(f"gradient of unit rows, d={d}", grad[ordinary], expected[ordinary], dtype)
    if not bool((grad[3] == 0).all()):
        raise AssertionError("a zero row has a gradient")


def check_capture(head: str) -> None:
    """Epochs of a small graph, captured: the losses of those that are not."""
    from fishergraph.nn import FisherNet, capture, train

    x, edges = torch.randn(200, 12), torch.randint(200, (2, 900))
    found = []
    for least in (8, 1000):
        torch.manual_seed(0)
        capture._LEAST_EPOCHS = least
        net = FisherNet(12, 16, 2, 3, head=head, dropout=0.5)
        nodes = range(100), range(100, 200)
        history = train(net, x, torch.arange(200) % 3, edges, train=nodes[0], val=nodes[1], epochs=12, device="cuda")
        found.append([(row["loss"], row["val_loss"]) for row in history.rows])
    if found[0] != found[1]:
        raise AssertionError(f"captured epochs differ: {found}")


def gradients(engine: str, inputs, sets: TensorSets, steps: Steps, slopes, of_mass) -> list[torch.Tensor]:
    """Means, mass, and the gradients of ⟨means, slopes⟩ + ⟨mass, of_mass⟩."""
    leaves = [None if tensor is None else tensor.clone().requires_grad_() for tensor in inputs]
    means, mass = em_means(leaves[0], sets.weighted(leaves[2]), leaves[1], steps, engine=engine)
    total = (means * slopes).sum() + (mass * of_mass).sum()
    grads = torch.autograd.grad(total, [leaf for leaf in leaves if leaf is not None])
    return [means.detach(), mass.detach(), *grads]


if __name__ == "__main__":
    main()
