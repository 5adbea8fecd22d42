"""Digits as bags of patches: an embedding of sets, a linear probe on it, and a kernel machine on its Gram matrix.

A digit of 8 × 8 pixels is the set of its 36 patches of 3 × 3 intensities. The positions of the patches are not used.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from fishergraph import EM, FisherSetEmbedding, set_kernel


def main() -> dict[str, float]:
    """Test accuracy of mean pooling, of the embedding, and of the kernel machine."""
    images, y = load_digits(return_X_y=True)
    windows = np.lib.stride_tricks.sliding_window_view(images.reshape(-1, 8, 8) / 16, (3, 3), axis=(1, 2))
    sets = list(windows.reshape(len(y), 36, 9))  # a list of (36, 9) matrices; sets may differ in size
    train, test, y_train, y_test = train_test_split(sets, y, stratify=y, random_state=0)

    scores = {}
    one = {"n_anchors": 1, "kernel": "identity", "em": EM(prior=0.0)}  # a single anchor: the mean of the members
    for name, params in (("mean pooling", one), ("FisherSetEmbedding", {})):
        embedding = FisherSetEmbedding(**params, random_state=0)
        pipeline = make_pipeline(embedding, StandardScaler(), LogisticRegression(max_iter=1000))
        scores[name] = pipeline.fit(train, y_train).score(test, y_test)

    embedding = FisherSetEmbedding(random_state=0)
    svm = SVC(kernel="precomputed", C=10).fit(set_kernel(train, embedding=embedding, cosine=True), y_train)
    scores["kernel machine"] = svm.score(set_kernel(test, train, embedding=embedding, cosine=True), y_test)
    return scores


if __name__ == "__main__":
    for name, accuracy in main().items():
        print(f"{name:<20} {accuracy:.3f}")
