"""
What sharpness does
===================

The members of a neighbourhood are shared out among the components of a mixture. `GaussianMixture(sharpness=…)` says
how decidedly: near 0 a member belongs to one anchor, at 1 to all of them alike.
"""

import matplotlib.pyplot as plt
import numpy as np

from fishergraph import FisherEmbedding, GaussianMixture, learn_anchors

rng = np.random.default_rng(0)
centres = np.array([[0, 0], [4, 0.5], [2, 3]])
points = np.concatenate([rng.normal(centre, 0.7, size=(120, 2)) for centre in centres])
anchors = learn_anchors(points, 3, rng=0)

# %%
# The responsibilities of the three anchors as colours: how much of a point at each place the red, the green and the
# blue anchor explain. The variance is found such that their mean entropy is `sharpness` times the largest possible one.

grid = np.stack(np.meshgrid(np.linspace(-2, 6, 160), np.linspace(-2, 5, 140)), axis=-1)
figure, axes = plt.subplots(1, 4, figsize=(12, 3.4), layout="constrained", sharey=True)
for ax, sharpness in zip(axes, [0.05, 0.3, 0.6, 0.9], strict=True):
    theta = GaussianMixture(sharpness=sharpness).at_centres(anchors, points)
    scores = -((grid[:, :, None] - anchors) ** 2).sum(-1) / (2 * theta.variance)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    ax.imshow(0.25 + 0.75 * shares, extent=(-2, 6, -2, 5), origin="lower", aspect="auto")
    ax.plot(*points.T, ".", color="white", markersize=2)
    ax.plot(*anchors.T, "k*", markersize=12)
    ax.set_title(f"sharpness {sharpness}\nσ = {theta.variance**0.5:.2f}")
    ax.set(xticks=[], yticks=[], xlim=(-2, 6), ylim=(-2, 5))
plt.show()

# %%
# In an embedding, the variance of every layer is found like this. 0.9 is the default for nodes and 0.5 for sets of
# vectors, whose members are of several kinds.

for sharpness in (0.05, 0.5, 0.9):
    family = GaussianMixture(sharpness=sharpness)
    model = FisherEmbedding(dim=2, walk=None, structure=None, family=family, random_state=0).fit(points)
    print(sharpness, [float(f"{layer.theta.variance:.3g}") for layer in model.stack_.layers])
