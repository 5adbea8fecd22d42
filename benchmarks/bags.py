"""Bags of vectors made of what scikit-learn brings along: digits as patches, digits as ink, docstrings as words."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import sklearn
from sklearn.datasets import load_digits
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

from fishergraph.datasets import equal_mean_sets


@dataclass(frozen=True)
class Bags:
    """Sets of vectors, the weights of their members (None where each weighs one), and labels."""

    sets: list[np.ndarray]
    weights: list[np.ndarray] | None
    y: np.ndarray

    def take(self, rows: np.ndarray) -> Bags:
        """The bags of these numbers."""
        weights = None if self.weights is None else [self.weights[k] for k in rows]
        return Bags([self.sets[k] for k in rows], weights, self.y[rows])

    def copies(self) -> list[np.ndarray]:
        """The sets with whole weights as copies of their members, for methods that know no weights."""
        if self.weights is None:
            return self.sets
        pairs = zip(self.sets, self.weights, strict=True)
        return [np.repeat(points, weights.astype(int), axis=0) for points, weights in pairs]


def digit_patches() -> Bags:
    """A digit of 8 × 8 pixels as its 36 patches of 3 × 3 intensities; where a patch lies is not said."""
    images, y = load_digits(return_X_y=True)
    windows = np.lib.stride_tricks.sliding_window_view(images.reshape(-1, 8, 8) / 16, (3, 3), axis=(1, 2))
    return Bags(list(windows.reshape(len(y), 36, 9).astype(np.float32)), None, y)


def digit_ink() -> Bags:
    """A digit as the places (row, column) of its ink, each weighing its intensity, 1 to 16."""
    images, y = load_digits(return_X_y=True)
    places = np.stack(np.divmod(np.arange(64), 8), axis=1).astype(np.float32)
    return Bags([places[row > 0] for row in images], [row[row > 0] for row in images], y)


def docstrings() -> Bags:
    """The docstrings of scikit-learn's public names as bags of word vectors; the label is the subpackage.

    Subpackages of fewer than 18 names are left out. A word is a row of the 30 leading factors of its tf-idf over
    the docstrings, computed without labels; names that stand in the docstring as code are words like others.
    """
    texts, packages = _public_docstrings()
    counter = CountVectorizer(token_pattern=r"[a-z]{3,}", stop_words="english", min_df=3)
    counts = counter.fit_transform(texts)
    factors = TruncatedSVD(30, random_state=0).fit_transform(TfidfTransformer().fit_transform(counts).T)
    vectors = (factors / np.maximum(np.linalg.norm(factors, axis=1, keepdims=True), 1e-12)).astype(np.float32)
    rows = [counts[k] for k in range(len(texts))]
    y = np.unique(packages, return_inverse=True)[1]
    return Bags([vectors[row.indices] for row in rows], [row.data.astype(float) for row in rows], y)


def _public_docstrings() -> tuple[list[str], list[str]]:
    docstrings: dict[str, list[str]] = {}
    for package in sorted(sklearn.__all__):
        try:
            module = importlib.import_module(f"sklearn.{package}")
        except ImportError:
            continue
        for name in sorted(getattr(module, "__all__", [])):
            thing = module.__dict__.get(name)
            text = inspect.getdoc(thing) if inspect.isclass(thing) or inspect.isfunction(thing) else None
            if text and len(re.findall(r"[a-z]{3,}", text.lower())) >= 20:
                docstrings.setdefault(package, []).append(text.lower())
    pairs = [(text, package) for package, texts in docstrings.items() if len(texts) >= 18 for text in texts]
    texts, packages = zip(*pairs, strict=True)
    return list(texts), list(packages)


def equal_means() -> Bags:
    """Sets with one mean and different modes (`fishergraph.datasets.equal_mean_sets`)."""
    sets, y = equal_mean_sets(800)
    return Bags(sets, None, y)


BAGS: dict[str, Callable[[], Bags]] = {
    "digits, 3x3 patches": digit_patches,
    "digits, places of ink": digit_ink,
    "docstrings, words": docstrings,
    "equal means": equal_means,
}
