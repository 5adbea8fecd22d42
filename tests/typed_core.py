"""Assignments that pyright checks: the arrays and sets of the library satisfy the protocols of the core."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import torch

    from fishergraph._typing import Array, PlainSets, Rng, Sets
    from fishergraph.family import Family, GaussianMixture
    from fishergraph.family.gaussian_mixture import GaussianMixtureTheta
    from fishergraph.multiset import LiftedSets, Multisets
    from fishergraph.ops.tensor_sets import TensorSets

    def arrays(host: np.ndarray, tensor: torch.Tensor) -> tuple[Array, Array]:
        return host, tensor

    def sets(plain: Multisets, tensors: TensorSets, lifted: LiftedSets) -> tuple[PlainSets, PlainSets, Sets]:
        return plain, tensors, lifted

    def streams(generator: np.random.Generator) -> Rng:
        return generator

    def families(mixture: GaussianMixture) -> tuple[Family, Family[GaussianMixtureTheta]]:
        return mixture, mixture
