"""`BoostedProbe`: gradient-boosted trees of LightGBM, whose settings FLAML or Optuna chooses on validation accuracy.

Both tuners search the same space: FLAML's own for LightGBM (trees, their size, rows at the end of a branch, learning
rate, bins, fraction of the columns, two penalties), and whether splits have random thresholds (`extra_trees`). FLAML
moves from a point to better ones near it (CFO); Optuna models the good and the bad settings by densities (TPE). Both
start at settings that suit embeddings, in which no single column says much: small trees, each on about fifty of the
columns, with random splits. They are fast if there are many columns and classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph._errors import InputError
from fishergraph._optional import require
from fishergraph._progress import progress_bar
from fishergraph._validation import check_integer, check_n_jobs, check_number, check_seed, look_up
from fishergraph.probes.base import Probe
from fishergraph.probes.validation import FIT_ON, encode

_FIXED = {"verbose": -1, "deterministic": True, "force_row_wise": True}  # the same trees at any number of threads
_START_COLUMNS = 50  # of a tree at the start of a search


class BoostedProbe(Probe):
    """LightGBM with the settings of the highest validation accuracy.

    It needs the extra `automl`. At least one of the two limits must be set. With `n_trials` alone a seed gives the same
    model on every machine; within a time budget a faster machine tries more settings.

    Parameters
    ----------
    tuner : {'flaml', 'optuna'}, default='flaml'
        What searches; the paper's is FLAML.
    time_budget : float, default=60.0
        Seconds of the search; None sets no limit.
    n_trials : int, default=None
        Largest number of settings that are tried; None sets no limit.
    n_models : int, default=1
        Number of models with the chosen settings and different seeds that are averaged.
    fit_on : {'train', 'train+val'}, default='train'
        The rows on which the models with the chosen settings are fitted.
    n_jobs : int, default=1
        Threads of LightGBM; None uses all cores.
    random_state : int, default=0
        Seed of the search and of the first model.
    verbose : bool or callable, default=False
        Show a progress bar. A callable is used as in `FisherEmbedding`.

    Attributes
    ----------
    models_ : list of lightgbm.LGBMClassifier
        The fitted models.
    params_ : dict
        Their settings.
    val_score_ : float
        The validation accuracy of these settings, fitted to the training rows.
    n_trials_ : int
        How many settings were tried.
    classes_ : array of shape (n_classes,)
        Labels of the fitted rows.

    See Also
    --------
    LogisticProbe : A linear model, faster and deterministic.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph.probes import BoostedProbe
    >>> Z, y = np.random.default_rng(0).normal(size=(300, 8)), np.arange(300) % 2
    >>> Z[:, 0] += 8 * y
    >>> probe = BoostedProbe(time_budget=None, n_trials=2)
    >>> float(probe.fit(Z, y, train=np.arange(200), val=np.arange(200, 300)).val_score_)  # doctest: +SKIP
    1.0
    """

    def __init__(
        self,
        tuner: str = "flaml",
        time_budget: float | None = 60.0,
        n_trials: int | None = None,
        *,
        n_models: int = 1,
        fit_on: str = "train",
        n_jobs: int | None = 1,
        random_state: int = 0,
        verbose: Any = False,
    ):
        self.tuner = tuner
        self.time_budget = time_budget
        self.n_trials = n_trials
        self.n_models = n_models
        self.fit_on = fit_on
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _fit(self, Z: Any, y: np.ndarray, train: np.ndarray, val: np.ndarray) -> None:
        search, refit = look_up(TUNERS, self.tuner, "tuner"), look_up(FIT_ON, self.fit_on, "fit_on")
        watch = _Watch(self.time_budget, self.n_trials, self.verbose)
        check_integer(self.n_models, "n_models", least=1)
        n_jobs = -1 if check_n_jobs(self.n_jobs) is None else self.n_jobs
        fixed = {"n_jobs": n_jobs, "random_state": check_seed(self.random_state, "random_state"), **_FIXED}
        self.classes_, codes = encode(y[train])
        rows = _Rows(_floats(Z[train]), codes, _floats(Z[val]), y[val], self.classes_)
        with watch:
            self.params_ = search(rows, watch, fixed)
        self.n_trials_ = watch.count
        self.models_ = self._models(fixed, rows.Z, rows.codes)
        self.val_score_ = rows.accuracy(self._mean_proba)
        if refit:
            nodes = np.concatenate([train, val])
            self.classes_, codes = encode(y[nodes])
            self.models_ = self._models(fixed, _floats(Z[nodes]), codes)

    def _models(self, fixed: dict[str, Any], Z: Any, codes: np.ndarray) -> list[Any]:
        """Fitted models with the chosen settings; the seed of the first is `random_state`."""
        models = []
        with progress_bar(self.verbose, unit="model")("fitting", self.n_models) as steps:
            for seed in range(self.random_state, self.random_state + self.n_models):
                models.append(_classifier(self.params_, {**fixed, "random_state": seed}).fit(Z, codes))
                steps.update(1)
        return models

    def _mean_proba(self, Z: Any) -> np.ndarray:
        return np.mean([model.predict_proba(Z) for model in self.models_], axis=0)

    def _proba(self, Z: Any) -> np.ndarray:
        return self._mean_proba(_floats(Z))


@dataclass(frozen=True)
class _Rows:
    """What a search uses: training rows with class numbers, validation rows with labels."""

    Z: Any
    codes: np.ndarray
    val_Z: Any
    val_y: np.ndarray
    classes: np.ndarray

    def accuracy(self, proba: Callable[[Any], Any]) -> float:
        """The accuracy on the validation rows of a function that returns class probabilities."""
        return float(np.mean(self.classes[np.argmax(proba(self.val_Z), axis=1)] == self.val_y))


class _Watch:
    """The limits and the progress of a search, in trials, or in seconds if only they are limited."""

    def __init__(self, seconds: float | None, trials: int | None, verbose: Any):
        if seconds is None and trials is None:
            raise InputError(parameter="time_budget or n_trials", expected="be set", got="None for both")
        self.seconds = None if seconds is None else check_number(seconds, "time_budget (or None)", strict=True)
        self.trials = None if trials is None else check_integer(trials, "n_trials (or None)", least=1)
        self.count, self.best = 0, 0.0
        unit, steps = ("trial", self.trials) if self.trials else ("s", round(self.seconds or 0))
        self._bar = progress_bar(verbose, unit=unit)("tuning", steps)

    def __enter__(self) -> _Watch:
        self._shown, self._start, self._steps = 0, perf_counter(), self._bar.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._bar.__exit__(*error)

    def trial(self, accuracy: float) -> None:
        """Count a trial."""
        self.count, self.best = self.count + 1, max(self.best, accuracy)
        done = self.count if self.trials else int(self._elapsed())
        self._steps.set_postfix(best=self.best)
        self._steps.update(done - self._shown)
        self._shown = done

    def late(self) -> bool:
        """Whether the time is over and a trial is complete."""
        return self.count > 0 and self.seconds is not None and self._elapsed() > self.seconds

    def _elapsed(self) -> float:
        return perf_counter() - self._start


# --- the tuners: (rows, watch, fixed settings) → the best settings ----------------------------------------


def _flaml(rows: _Rows, watch: _Watch, fixed: dict[str, Any]) -> dict[str, Any]:
    """The settings that FLAML finds; within a time budget it may try the first ones on some of the rows."""
    _require_lightgbm()
    automl = require("flaml.automl", extra="automl").AutoML()
    domains = {**_FIXED, "extra_trees": require("flaml.tune", extra="automl").choice([False, True])}

    def loss(X_val: Any, y_val: Any, estimator: Any, *_: Any, **__: Any) -> tuple[float, dict[str, float]]:
        accuracy = rows.accuracy(estimator.predict_proba)
        watch.trial(accuracy)
        return 1 - accuracy, {"accuracy": accuracy}

    options = {"task": "classification", "estimator_list": ["lgbm"], "metric": loss, "eval_method": "holdout"}
    options |= {"retrain_full": False, "verbose": 0, "log_file_name": "", "sample": watch.seconds is not None}
    options |= {"time_budget": watch.seconds or -1, "max_iter": watch.trials}
    options |= {"seed": fixed["random_state"], "n_jobs": fixed["n_jobs"]}
    options["starting_points"] = {"lgbm": _start(*rows.Z.shape)}
    options["custom_hp"] = {"lgbm": {name: {"domain": domain} for name, domain in domains.items()}}
    # `loss` does not use FLAML's validation labels: these may hold a class that no training row has.
    unused = np.resize(rows.codes, len(rows.val_y))
    automl.fit(rows.Z, rows.codes, X_val=rows.val_Z, y_val=unused, **options)
    if automl.best_config is None:
        got = f"{watch.seconds:g} seconds, which is too short"
        raise InputError(parameter="time_budget", expected="last for one trial", got=got, advice="raise it")
    return _lightgbm_names(dict(automl.best_config))


def _optuna(rows: _Rows, watch: _Watch, fixed: dict[str, Any]) -> dict[str, Any]:
    """The settings that Optuna finds; the trial that runs when the time is over ends between two trees."""
    _require_lightgbm()
    optuna: Any = require("optuna", extra="automl")

    def stop(_: Any) -> None:
        if watch.late():
            raise optuna.TrialPruned

    def accuracy(trial: Any) -> float:
        settings = _lightgbm_names(_draw(trial, len(rows.codes)))
        model = _classifier(settings, fixed).fit(rows.Z, rows.codes, callbacks=[stop])
        score = rows.accuracy(model.predict_proba)
        watch.trial(score)
        return score

    with _quiet(optuna):
        sampler = optuna.samplers.TPESampler(seed=fixed["random_state"])
        study = optuna.create_study(direction="maximize", sampler=sampler)
        study.enqueue_trial(_start(*rows.Z.shape))
        study.optimize(accuracy, n_trials=watch.trials, timeout=watch.seconds)
    return _lightgbm_names(study.best_params)


TUNERS = {"flaml": _flaml, "optuna": _optuna}


def _start(n_rows: int, n_columns: int) -> dict[str, Any]:
    """The settings at which both searches start, under FLAML's names; it allows no more trees than rows."""
    fraction = max(0.05, min(1.0, _START_COLUMNS / n_columns))
    trees = {"n_estimators": max(5, min(200, n_rows)), "num_leaves": 15, "min_child_samples": 20}
    steps = {"learning_rate": 0.1, "log_max_bin": 6, "colsample_bytree": fraction}
    return {**trees, **steps, "reg_alpha": 1 / 1024, "reg_lambda": 10.0, "extra_trees": True}


def _draw(trial: Any, n_rows: int) -> dict[str, Any]:
    """A point of FLAML's space for LightGBM, drawn by Optuna."""
    most = max(128, min(32768, n_rows))
    integers = {"n_estimators": (4, most), "num_leaves": (4, most), "min_child_samples": (2, 129)}
    settings = {name: trial.suggest_int(name, *bounds, log=True) for name, bounds in integers.items()}
    settings["learning_rate"] = trial.suggest_float("learning_rate", 1 / 1024, 1.0, log=True)
    settings["log_max_bin"] = trial.suggest_int("log_max_bin", 3, 11, log=True)
    settings["colsample_bytree"] = trial.suggest_float("colsample_bytree", 0.01, 1.0)
    for name in ("reg_alpha", "reg_lambda"):
        settings[name] = trial.suggest_float(name, 1 / 1024, 1024, log=True)
    settings["extra_trees"] = trial.suggest_categorical("extra_trees", [False, True])
    return settings


def _lightgbm_names(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings under LightGBM's names, in plain numbers; the number of bins is 2^k − 1."""
    settings = {name: value for name, value in settings.items() if name not in _FIXED}
    settings = {name: value.item() if hasattr(value, "item") else value for name, value in settings.items()}
    settings["max_bin"] = 2 ** int(settings.pop("log_max_bin")) - 1
    return settings


def _classifier(settings: dict[str, Any], fixed: dict[str, Any]) -> Any:
    return _require_lightgbm().LGBMClassifier(**settings, **fixed)


def _require_lightgbm() -> Any:
    return require("lightgbm", extra="automl")


@contextmanager
def _quiet(optuna: Any) -> Iterator[None]:
    """A block in which Optuna reports no trials; its verbosity is restored afterwards."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


def _floats(rows: Any) -> Any:
    """Rows as LightGBM accepts them: float32 or float64, dense or a CSR matrix."""
    rows = rows if rows.dtype in (np.float32, np.float64) else rows.astype(np.float64)
    return sp.csr_matrix(rows) if sp.issparse(rows) else rows
