"""The base class of probes: one interface, validated once."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from fishergraph._arrays import check_finite_result
from fishergraph._diagram import Diagram, Summary
from fishergraph._errors import FileFormatError, InputError
from fishergraph._repr import short_params
from fishergraph._typing import MatrixLike
from fishergraph._validation import check_integer, check_number
from fishergraph._version import __version__
from fishergraph._warn import each_warning_once
from fishergraph.io.array_file import foreign, only, read_file, reading_model, write_file
from fishergraph.probes.validation import read_classes, validate_embedding, validate_problem

_FIELDS = ("classes", "classes_dtype", "n_features", "val_score", "parts")  # of every probe in a model file


class Probe(Diagram, ClassifierMixin, BaseEstimator):
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

    def _summary(self) -> Summary | None:
        if not hasattr(self, "classes_"):
            return None
        sizes = f"Fitted on {self.n_features_in_:,} columns; {len(self.classes_):,} classes"
        blocks = [name for name, _ in getattr(self, "blocks_", ())]
        several = (f"Blocks of columns: {', '.join(blocks)}",) if len(blocks) > 1 else ()
        facts = (sizes, *several, f"{self.val_score_:.1%} of the validation rows right")
        return Summary(facts, ("head", "weight"), tuple(getattr(self, "chosen_", {}).items()))

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
        return check_finite_result(self._proba(self._checked(Z)), "the probabilities of the probe")

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
        return np.argmax(check_finite_result(self._proba(Z), "the probabilities of the probe"), axis=1)

    def _checked(self, Z: MatrixLike) -> Any:
        check_is_fitted(self)
        return validate_embedding(Z, n_features=self.n_features_in_)

    # --- model files ------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the fitted probe to one safetensors file.

        Parameters
        ----------
        path : str or path
            The file; it appears complete or not at all.
        """
        entry, arrays = self.pack()
        write_file(path, {"class": type(self).__name__, "fishergraph": __version__, "probe": entry}, arrays)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a probe that `save` wrote; it gives the same bits.

        Parameters
        ----------
        path : str or path
            The file.

        Returns
        -------
        Probe
            The fitted probe.
        """
        with reading_model(path):
            header, arrays = read_file(path)
            found = header.get("class")
            if not isinstance(found, str):
                raise foreign(path, "one with parts missing or unknown ('class')")
            if found != cls.__name__:
                text = f"{path} must hold a {cls.__name__}, got a {found}; load it with {found}.load."
                raise FileFormatError(text, path=path)
            probe = cls.unpack(only(header, ("class", "fishergraph", "probe"))["probe"], arrays)
            for left in arrays:
                raise KeyError(left)
        return probe

    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return what a model file holds of the fitted probe.

        Returns
        -------
        tuple
            An object of JSON, and arrays by name.
        """
        check_is_fitted(self)
        arrays: dict[str, np.ndarray] = {}
        entry = {"classes": self.classes_.tolist(), "classes_dtype": self.classes_.dtype.str}
        entry |= {"n_features": self.n_features_in_, "val_score": float(self.val_score_), "parts": self._pack(arrays)}
        return entry, {name: np.ascontiguousarray(array) for name, array in arrays.items()}

    @classmethod
    def unpack(cls, entry: Mapping[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        """Return the probe that `pack` described.

        Parameters
        ----------
        entry : dict
            The object.
        arrays : dict
            The arrays; those of the probe are taken out.

        Returns
        -------
        Probe
            The fitted probe.
        """
        fields, probe = only(entry, _FIELDS), cls()
        probe.classes_ = read_classes(fields["classes"], fields["classes_dtype"])
        if len(probe.classes_) < 2:
            raise ValueError("a probe must have two classes.")
        probe.n_features_in_ = check_integer(fields["n_features"], "n_features", least=1)
        probe.val_score_ = check_number(fields["val_score"], "val_score", most=1.0)
        probe._unpack(fields["parts"], arrays)
        return probe

    def _pack(self, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
        """What this kind of probe adds to a model file; its arrays go into `arrays`."""
        text = f"a {type(self).__name__} holds models of another package, which a model file cannot hold"
        raise InputError(f"{text}; keep it with joblib.")

    def _unpack(self, entry: Mapping[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Take what `_pack` wrote, and raise unless it is valid."""
        raise KeyError(type(self).__name__)
