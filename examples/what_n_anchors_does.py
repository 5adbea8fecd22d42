"""
What n_anchors does
===================

Every set of points is moved a little from the anchors: EM takes one step from them, and the arrows that it walks,
side by side, are the embedding φ of the set. With one anchor, the arrow leads to the mean of the set. With several,
each looks after a region.
"""

import matplotlib.pyplot as plt
import numpy as np

from fishergraph import FisherSetEmbedding, Multisets, em_means, fisher_embedding, learn_anchors

rng = np.random.default_rng(0)
side = rng.choice([-2, 2], size=60)
across = np.stack([side, np.zeros(60)], axis=1) + rng.normal(0, 0.5, (60, 2))
upright = np.stack([np.zeros(60), side], axis=1) + rng.normal(0, 0.5, (60, 2))
points = np.concatenate([across, upright])
sets = Multisets(np.array([0, 60, 120]), np.arange(120), weights=None, n_points=120)

# %%
# Both sets have their mean in the middle, so one anchor hardly tells them apart. Four do: the anchors on the left and
# on the right find no members nearby in the second set, and are drawn towards its middle.

figure, axes = plt.subplots(2, 3, figsize=(9, 6.3), layout="constrained", sharex=True, sharey=True)
for column, n_anchors in zip(axes.T, [1, 2, 4], strict=True):
    anchors = learn_anchors(points, n_anchors, init="k-means++", n_iter=20, rng=3)
    means, mass = em_means(points, sets, anchors, variance=1.0)
    phi = fisher_embedding(means, anchors)
    for ax, number, members in zip(column, range(2), [across, upright], strict=True):
        ax.plot(*members.T, ".", color="lightgrey")
        step = means[number] - anchors
        ax.quiver(*anchors.T, *step.T, angles="xy", scale_units="xy", scale=1, color="#D55E00", width=0.012, zorder=3)
        ax.plot(*anchors.T, "k*", markersize=11)
        ax.set(xticks=[], yticks=[], aspect="equal")
    column[0].set_title(f"n_anchors={n_anchors}\nthe two φ are {np.linalg.norm(phi[0] - phi[1]):.2f} apart")
plt.show()

# %%
# `FisherSetEmbedding(n_anchors=…)` does this for any number of sets, with anchors for all of them.

Z = FisherSetEmbedding(n_anchors=4, kernel="identity", random_state=0).fit_transform([across, upright])
print(Z.shape, "two sets, four anchors of two coordinates")
