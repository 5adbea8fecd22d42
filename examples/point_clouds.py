"""
Point clouds as sets
====================

A cloud of points has no order and no fixed size: it is a set. `FisherSetEmbedding` gives one vector for each cloud,
which can then be classified or drawn.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from fishergraph import FisherSetEmbedding
from fishergraph.plots import PALETTE

rng = np.random.default_rng(0)


def cloud(shape: str) -> np.ndarray:
    """Between 60 and 200 points near a surface."""
    n = rng.integers(60, 200)
    u, v = rng.uniform(0, 2 * np.pi, (2, n))
    if shape == "sphere":
        points = rng.normal(size=(n, 3))
        points /= np.linalg.norm(points, axis=1, keepdims=True)
    elif shape == "torus":
        ring = 1 + 0.4 * np.cos(u)
        points = np.stack([ring * np.cos(v), ring * np.sin(v), 0.4 * np.sin(u)], axis=1)
    elif shape == "cube":
        points = rng.uniform(-1, 1, size=(n, 3))
        points[np.arange(n), rng.integers(3, size=n)] = rng.choice([-1, 1], size=n)
    else:  # a helix
        points = np.stack([np.cos(2 * u), np.sin(2 * u), u / np.pi - 1], axis=1)
    return points * rng.uniform(0.8, 1.2) + rng.normal(0, 0.08, (n, 3))


shapes = ["sphere", "torus", "cube", "helix"]
labels = np.repeat(np.arange(4), 60)
clouds = [cloud(shapes[label]) for label in labels]
figure, axes = plt.subplots(1, 4, figsize=(11, 3), subplot_kw={"projection": "3d"}, layout="constrained")
for ax, label in zip(axes, range(4), strict=True):
    ax.scatter(*clouds[60 * label + 1].T, s=5, color=PALETTE[label])
    ax.set_title(shapes[label])
    ax.set_axis_off()
plt.show()

# %%
# One row for each cloud.

Z = FisherSetEmbedding(dim=128, random_state=0).fit_transform(clouds)
accuracy = cross_val_score(LogisticRegression(max_iter=2000), Z, labels, cv=5).mean()
print(Z.shape, f"logistic regression on the embedding: {accuracy:.0%}")

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
plane = PCA(2).fit_transform(Z)
for label, shape in enumerate(shapes):
    ax.plot(*plane[labels == label].T, "o", color=PALETTE[label], markersize=4, label=shape)
ax.set(xticks=[], yticks=[], title="240 clouds")
ax.legend(frameon=False)
plt.show()
