"""Sentences of the library, which speak of Python, in the words of the command line."""

from __future__ import annotations

import re

from fishergraph.cli.options import SETTINGS, TRAIN_SETTINGS

# parameter of Python: option
_OPTIONS = {parameter: option for option, parameter in {**SETTINGS, **TRAIN_SETTINGS}.items()} | {
    "num_neighbors": "fan_out",
    "n_nodes": "nodes",
    "n_jobs": "jobs",
    "random_state": "seed",
    "device": "device",
    "precision": "precision",
}
_OFF = {"undirected": "--directed"}  # the others are --no-NAME
_BEFORE = r"(?<![\w'./\\-])"  # a name in quotes or in a path is another
_SETTING = re.compile(rf"{_BEFORE}({'|'.join(_OPTIONS)})=('[^']*'|\[[^]]*\]|-?\w+(?:\.\w+)*|…)")
_NAME = re.compile(rf"{_BEFORE}({'|'.join(name for name in _OPTIONS if '_' in name)})(?![\w'=(/\\])")


def in_options(text: str) -> str:
    """The text with batch_size=8 as --batch-size 8, normalize=False as --no-normalize, and batch_size as --batch-size.

    Names of one word, such as weights, are words as well, and stay where they have no value.
    """
    return _NAME.sub(lambda match: _flag(match[1]), _SETTING.sub(lambda match: _setting(*match.groups()), text))


def _flag(name: str) -> str:
    return "--" + _OPTIONS[name].replace("_", "-")


def _setting(name: str, value: str) -> str:
    if value in ("True", "False"):
        return _flag(name) if value == "True" else _OFF.get(name, f"--no-{_flag(name)[2:]}")
    if value == "None":
        return f"no {_flag(name)}"
    return f"{_flag(name)} {value.strip(chr(39) + '[]').replace(', ', ',')}"
