"""
Bags of patches: digits as sets
===============================

A digit of 8 × 8 pixels is the set of its 36 patches of 3 × 3 intensities; where a patch was in the picture is not
used. An embedding of sets with a linear classifier, and a kernel machine on its Gram matrix, against the mean patch.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from fishergraph import EM, FisherSetEmbedding, set_kernel

images, y = load_digits(return_X_y=True)
windows = np.lib.stride_tricks.sliding_window_view(images.reshape(-1, 8, 8) / 16, (3, 3), axis=(1, 2))
sets = list(windows.reshape(len(y), 36, 9))  # a list of (36, 9) matrices; sets may differ in size
train, test, y_train, y_test = train_test_split(sets, y, stratify=y, random_state=0)

# %%
# With a single anchor and no prior the embedding is the mean of the members. Digits with the same strokes at other
# places then look alike.

scores = {}
one = {"n_anchors": 1, "kernel": "identity", "em": EM(prior=0.0)}
for name, params in (("mean pooling", one), ("FisherSetEmbedding", {})):
    embedding = FisherSetEmbedding(**params, random_state=0)
    pipeline = make_pipeline(embedding, StandardScaler(), LogisticRegression(max_iter=1000))
    scores[name] = pipeline.fit(train, y_train).score(test, y_test)

# %%
# A Gram matrix for a kernel machine. The embedding that is fitted in the first call is used in the second.

embedding = FisherSetEmbedding(random_state=0)
svm = SVC(kernel="precomputed", C=10).fit(set_kernel(train, embedding=embedding, cosine=True), y_train)
scores["kernel machine"] = svm.score(set_kernel(test, train, embedding=embedding, cosine=True), y_test)
for name, accuracy in scores.items():
    print(f"{name:<20} {accuracy:.3f}")

# %%
# A digit, its patches, and the accuracies on a quarter of the digits.

figure = plt.figure(figsize=(11, 3.2), layout="constrained")
left, middle, right = figure.subplots(1, 3)
left.imshow(images[0].reshape(8, 8), cmap="gray_r")
tiles = np.pad(windows[0], ((0, 0), (0, 0), (0, 1), (0, 1)), constant_values=0.5)
middle.imshow(tiles.transpose(0, 2, 1, 3).reshape(24, 24), cmap="gray_r")
for ax, title in ((left, "a digit"), (middle, "the set of its patches")):
    ax.set(title=title, xticks=[], yticks=[])
right.barh(list(scores), [100 * accuracy for accuracy in scores.values()], color="#0072B2")
right.set(xlabel="test accuracy, %", xlim=(50, 100))
right.invert_yaxis()
plt.show()
