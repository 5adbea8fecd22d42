"""`BoostedProbe`: gradient-boosted trees (LightGBM), their settings chosen on validation accuracy by FLAML or Optuna.

Both tuners look through one space, FLAML's own for LightGBM (trees, leaves, rows in a leaf, learning rate, bins, share
of columns, and the two penalties) and whether splits are at random thresholds (`extra_trees`). They differ in how:
FLAML goes from a point to better ones near it (CFO), Optuna models the good and the bad settings by densities (TPE).
Both start at settings that suit embeddings, where no column says much alone: small trees that see some fifty of the
columns each and split them at random. That is quick where columns and classes are many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from fishergraph._errors import InputError
from fishergraph._optional import require
from fishergraph._progress import progress_bar
from fishergraph._repr import short_params
from fishergraph._validation import check_integer, check_n_jobs, check_number, check_seed, look_up
from fishergraph.probes.door import FIT_ON, check_embedding, check_label_order, check_same_columns, check_split, encode


class BoostedProbe(ClassifierMixin, BaseEstimator):
    """LightGBM with the settings that are best on validation accuracy; it needs the extra `automl`.

    tuner         "flaml", the paper's, or "optuna"
    time_budget   seconds that the search may take; None sets no limit
    n_trials      most settings that are tried; None sets no limit. One of the two limits must be set. With this one
                  alone a seed gives the same model on every machine; a budget of seconds tries more on a fast one.
    n_models      how many models with the chosen settings, each with a seed of its own, are averaged in the end
    fit_on        "train" or "train+val": the rows on which the chosen settings are fitted in the end
    n_jobs        threads of LightGBM; None uses every core
    random_state  seed, a whole number
    verbose       show a progress bar; a callable is used as in `FisherEmbedding`

    Fitted: `models_` (LGBMClassifiers), `params_` (their settings), `val_score_` (of these settings fitted on the
    training rows), `n_trials_` (how many were tried), `classes_`.
    """

    def __init__(
        self, tuner: str = "flaml", time_budget: float | None = 60.0, n_trials: int | None = None, *,
        n_models: int = 1, fit_on: str = "train", n_jobs: int | None = 1, random_state: int = 0, verbose: Any = False,
    ):  # fmt: skip
        self.tuner = tuner
        self.time_budget = time_budget
        self.n_trials = n_trials
        self.n_models = n_models
        self.fit_on = fit_on
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    __repr__ = short_params

    def fit(self, Z: Any, y: Any, train: Any, val: Any) -> BoostedProbe:
        """self, fitted on rows `train` of Z with the settings that are best on rows `val` (index arrays or masks)."""
        search = look_up(TUNERS, self.tuner, "tuner")
        limits = _check_limits(self.time_budget, self.n_trials)
        check_integer(self.n_models, "n_models", least=1)
        refit = look_up(FIT_ON, self.fit_on, "fit_on")
        fixed = {
            "n_jobs": -1 if check_n_jobs(self.n_jobs) is None else self.n_jobs,
            "random_state": check_seed(self.random_state, "random_state"),
            **_FIXED,
        }
        check_label_order(y, Z)
        Z = check_embedding(Z)
        y, train, val = check_split(y, train, val, Z.shape[0])
        self.classes_, codes = encode(y[train])
        rows = _Rows(_floats(Z[train]), codes, _floats(Z[val]), y[val], self.classes_)
        with _Watch(limits, self.verbose) as watch:
            self.params_ = search(rows, limits, fixed, watch)
        self.n_trials_ = watch.count
        self.models_ = self._fitted(fixed, rows.Z, rows.codes)
        self.val_score_ = rows.accuracy(self._chances)
        if refit:
            nodes = np.concatenate([train, val])
            self.classes_, codes = encode(y[nodes])
            self.models_ = self._fitted(fixed, _floats(Z[nodes]), codes)
        self.n_features_in_ = Z.shape[1]
        return self

    def _fitted(self, fixed: dict[str, Any], Z: Any, codes: np.ndarray) -> list[Any]:
        """The models with the chosen settings; the seed of the first is `random_state`."""
        models = []
        with progress_bar(self.verbose, unit="model")("fitting", self.n_models) as steps:
            for seed in range(self.random_state, self.random_state + self.n_models):
                models.append(_classifier(self.params_, {**fixed, "random_state": seed}).fit(Z, codes))
                steps.update(1)
        return models

    def _chances(self, Z: Any) -> np.ndarray:
        """The mean of the models' probabilities, (row, class)."""
        return np.mean([model.predict_proba(Z) for model in self.models_], axis=0)

    def predict(self, Z: Any) -> np.ndarray:
        """The most probable class of each row."""
        return self.classes_[np.argmax(self.predict_proba(Z), axis=1)]

    def predict_proba(self, Z: Any) -> np.ndarray:
        """The class probabilities, (row, class); rows sum to 1."""
        check_is_fitted(self)
        Z = check_same_columns(check_embedding(Z), self.n_features_in_)
        return self._chances(_floats(Z))


@dataclass(frozen=True)
class _Limits:
    """The ends of a search; at least one of them is set."""

    seconds: float | None
    trials: int | None


@dataclass(frozen=True)
class _Rows:
    """What a search sees: training rows with class numbers, validation rows with labels."""

    Z: Any
    codes: np.ndarray
    val_Z: Any
    val_y: np.ndarray
    classes: np.ndarray

    def accuracy(self, chances: Callable[[Any], Any]) -> float:
        """The accuracy on the validation rows of a function that gives the probabilities of the classes."""
        return float(np.mean(self.classes[np.argmax(chances(self.val_Z), axis=1)] == self.val_y))


class _Watch:
    """The progress of a search: trials, or seconds where only they are limited, and the best accuracy so far."""

    def __init__(self, limits: _Limits, verbose: Any):
        self.limits, self.count, self.best = limits, 0, 0.0
        unit, steps = ("trial", limits.trials) if limits.trials else ("s", round(limits.seconds or 0))
        self._bar = progress_bar(verbose, unit=unit)("tuning", steps)

    def __enter__(self) -> _Watch:
        self._shown, self._start, self._steps = 0, perf_counter(), self._bar.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._bar.__exit__(*error)

    def trial(self, accuracy: float) -> None:
        """Count a trial."""
        self.count, self.best = self.count + 1, max(self.best, accuracy)
        done = self.count if self.limits.trials else int(self._seconds())
        self._steps.set_postfix(best=self.best)
        self._steps.update(done - self._shown)
        self._shown = done

    def late(self) -> bool:
        """Whether the seconds are over and there is a trial to fall back on."""
        return self.count > 0 and self.limits.seconds is not None and self._seconds() > self.limits.seconds

    def _seconds(self) -> float:
        return perf_counter() - self._start


# The tuners: (rows, limits, fixed settings, watch) → the best settings.

_FIXED = {"verbose": -1, "deterministic": True, "force_row_wise": True}  # the same trees at any number of threads


def _flaml(rows: _Rows, limits: _Limits, fixed: dict[str, Any], watch: _Watch) -> dict[str, Any]:
    """The settings that FLAML finds; it may try a budget's first settings on a part of the rows."""
    _require_lightgbm()
    automl = require("flaml.automl", extra="automl").AutoML()
    own = {"extra_trees": require("flaml.tune", extra="automl").choice([False, True])}

    def loss(X_val: Any, y_val: Any, estimator: Any, *_: Any, **__: Any) -> tuple[float, dict[str, float]]:
        accuracy = rows.accuracy(estimator.predict_proba)
        watch.trial(accuracy)
        return 1 - accuracy, {"accuracy": accuracy}

    # Its own copy of the validation labels is not looked at: they may hold a class that training rows do not.
    automl.fit(
        rows.Z, rows.codes, X_val=rows.val_Z, y_val=np.resize(rows.codes, len(rows.val_y)), task="classification",
        estimator_list=["lgbm"], metric=loss, eval_method="holdout", retrain_full=False, verbose=0, log_file_name="",
        time_budget=limits.seconds or -1, max_iter=limits.trials, sample=limits.seconds is not None,
        seed=fixed["random_state"], n_jobs=fixed["n_jobs"], starting_points={"lgbm": _start(*rows.Z.shape)},
        custom_hp={"lgbm": {name: {"domain": domain} for name, domain in {**_FIXED, **own}.items()}},
    )  # fmt: skip
    if automl.best_config is None:
        raise InputError(
            parameter="time_budget",
            expected="last for one trial",
            got=f"{limits.seconds:g} seconds, which did not",
            advice="raise it",
        )
    return _named(dict(automl.best_config))


def _optuna(rows: _Rows, limits: _Limits, fixed: dict[str, Any], watch: _Watch) -> dict[str, Any]:
    """The settings that Optuna finds; a trial that the end of the budget meets is given up between two trees."""
    _require_lightgbm()
    optuna: Any = require("optuna", extra="automl")
    space = _space(len(rows.codes))

    def stop(_: Any) -> None:
        if watch.late():
            raise optuna.TrialPruned

    def accuracy(trial: Any) -> float:
        settings = {name: draw(trial, name) for name, draw in space.items()}
        model = _classifier(_named(settings), fixed).fit(rows.Z, rows.codes, callbacks=[stop])
        found = rows.accuracy(model.predict_proba)
        watch.trial(found)
        return found

    with _quiet(optuna):
        study = optuna.create_study(
            direction="maximize", sampler=optuna.samplers.TPESampler(seed=fixed["random_state"])
        )
        study.enqueue_trial(_start(*rows.Z.shape))
        study.optimize(accuracy, n_trials=limits.trials, timeout=limits.seconds)
    return _named(study.best_params)


TUNERS: dict[str, Callable[[_Rows, _Limits, dict[str, Any], _Watch], dict[str, Any]]] = {
    "flaml": _flaml,
    "optuna": _optuna,
}

_COLUMNS = 50  # that a tree sees at the start


def _start(n_rows: int, n_columns: int) -> dict[str, Any]:
    """The settings at which both searches start, as FLAML names them; it takes no more trees than rows."""
    return {
        "n_estimators": max(5, min(200, n_rows)), "num_leaves": 15, "min_child_samples": 20, "learning_rate": 0.1,
        "log_max_bin": 6, "colsample_bytree": max(0.05, min(1.0, _COLUMNS / n_columns)), "reg_alpha": 1 / 1024,
        "reg_lambda": 10.0, "extra_trees": True,
    }  # fmt: skip


def _space(n_rows: int) -> dict[str, Callable[[Any, str], Any]]:
    """FLAML's space for LightGBM, as Optuna draws from it."""
    most = max(128, min(32768, n_rows))

    def whole(low: int, high: int) -> Callable[[Any, str], Any]:
        return lambda trial, name: trial.suggest_int(name, low, high, log=True)

    def real(low: float, high: float, *, log: bool = True) -> Callable[[Any, str], Any]:
        return lambda trial, name: trial.suggest_float(name, low, high, log=log)

    return {
        "n_estimators": whole(4, most), "num_leaves": whole(4, most), "min_child_samples": whole(2, 129),
        "learning_rate": real(1 / 1024, 1.0), "log_max_bin": whole(3, 11),
        "colsample_bytree": real(0.01, 1.0, log=False), "reg_alpha": real(1 / 1024, 1024),
        "reg_lambda": real(1 / 1024, 1024),
        "extra_trees": lambda trial, name: trial.suggest_categorical(name, [False, True]),
    }  # fmt: skip


def _named(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings under LightGBM's names: bins are 2^k − 1."""
    settings = {name: getattr(value, "item", lambda v=value: v)() for name, value in settings.items()}
    settings = {name: value for name, value in settings.items() if name not in _FIXED}
    settings["max_bin"] = 2 ** int(settings.pop("log_max_bin")) - 1
    return settings


def _classifier(settings: dict[str, Any], fixed: dict[str, Any]) -> Any:
    return _require_lightgbm().LGBMClassifier(**settings, **fixed)


def _require_lightgbm() -> Any:
    return require("lightgbm", extra="automl")


@contextmanager
def _quiet(optuna: Any) -> Iterator[None]:
    """A block in which Optuna reports no trial; its verbosity is given back as it was."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


def _floats(rows: Any) -> Any:
    """Rows as LightGBM takes them: float32 or float64, dense or a CSR matrix."""
    rows = rows if rows.dtype in (np.float32, np.float64) else rows.astype(np.float64)
    return sp.csr_matrix(rows) if sp.issparse(rows) else rows


def _check_limits(seconds: Any, trials: Any) -> _Limits:
    if seconds is None and trials is None:
        raise InputError(
            parameter="time_budget or n_trials",
            expected="be set",
            got="None for both",
            advice="pass seconds, or a number of trials",
        )
    return _Limits(
        None if seconds is None else check_number(seconds, "time_budget (or None)", strict=True),
        None if trials is None else check_integer(trials, "n_trials (or None)", least=1),
    )
