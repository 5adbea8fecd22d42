"""The base class of probes: one interface, validated once."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from fishergraph._repr import short_params
from fishergraph._typing import MatrixLike
from fishergraph._warn import each_warning_once
from fishergraph.probes.validation import validate_embedding, validate_problem


class Probe(ClassifierMixin, BaseEstimator):
    """Base class of classifiers on embeddings, whose settings are chosen on validation rows.

    A subclass implements `_fit` and `_proba`. Rows outside `train` and `val` are not used by `fit`.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Labels of the training rows.
    val_score_ : float
        Accuracy of the chosen model on the validation rows.
    """

    classes_: np.ndarray
    val_score_: float

    __repr__ = short_params

    @each_warning_once()
    def fit(self, Z: MatrixLike, y: ArrayLike, train: ArrayLike, val: ArrayLike) -> Self:
        """Fit to the training rows, with the settings that are best on validation rows.

        Parameters
        ----------
        Z : array or sparse matrix of shape (n, n_features)
            The embedding.
        y : array of shape (n,)
            Labels. Only those of `train` and `val` are read.
        train : array of int or bool
            Training rows, as numbers or as a mask.
        val : array of int or bool
            Validation rows, as numbers or as a mask.

        Returns
        -------
        Probe
            The fitted probe.
        """
        rows, *split = validate_problem(Z, y, train, val)
        self._fit(rows, *split)
        self.n_features_in_ = rows.shape[1]
        return self

    @abstractmethod
    def _fit(self, Z: Any, y: np.ndarray, train: np.ndarray, val: np.ndarray) -> None:
        """Set `classes_`, `val_score_` and the model."""

    @abstractmethod
    def _proba(self, Z: Any) -> np.ndarray:
        """The class probabilities of a valid embedding, (row, class)."""

    def predict_proba(self, Z: MatrixLike) -> np.ndarray:
        """Predict class probabilities.

        Parameters
        ----------
        Z : array or sparse matrix of shape (n, n_features)
            Rows of the embedding.

        Returns
        -------
        array of shape (n, n_classes)
            Probabilities in the order of `classes_`; rows sum to one.
        """
        return self._proba(self._checked(Z))

    def predict(self, Z: MatrixLike) -> np.ndarray:
        """Predict the most probable class.

        Parameters
        ----------
        Z : array or sparse matrix of shape (n, n_features)
            Rows of the embedding.

        Returns
        -------
        array of shape (n,)
            A label for each row.
        """
        return self.classes_[self._codes(self._checked(Z))]

    def _codes(self, Z: Any) -> np.ndarray:
        """The class numbers of the rows of a valid embedding."""
        return np.argmax(self._proba(Z), axis=1)

    def _checked(self, Z: MatrixLike) -> Any:
        check_is_fitted(self)
        return validate_embedding(Z, n_features=self.n_features_in_)
