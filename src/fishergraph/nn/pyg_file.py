"""The processed files of PyTorch Geometric's datasets, read without running what is in them."""

from __future__ import annotations

import pickle
import re
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data
from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
from torch_geometric.data.storage import GlobalStorage

from fishergraph._archive_checks import check_zip
from fishergraph._file_checks import check_readable

# What a Data object is made of; making one of these from a file runs nothing but their constructors.
_ADMITTED = [Data, DataEdgeAttr, DataTensorAttr, GlobalStorage]


def load_processed(path: Path) -> Data:
    """The one graph of a processed file: `(data, slices)`, `(fields, slices, class)`, or a `Data` as it is."""
    check_readable(path)
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                check_zip(archive)
        known = torch.serialization.get_safe_globals()  # which the end of `safe_globals` would forget
        with torch.serialization.safe_globals([kind for kind in _ADMITTED if kind not in known]):
            content = torch.load(path, map_location="cpu", weights_only=True)
    except (RuntimeError, ValueError, EOFError, OSError, pickle.UnpicklingError, zipfile.BadZipFile) as error:
        named = re.search(r"Unsupported (?:global: GLOBAL|class) (\S+)", str(error))
        reason = f"it names {named[1]}" if named else " ".join(str(error).split("\n")[0].split())[:200]
        raise ValueError(
            f"'{path}' must be a file of tensors as PyTorch Geometric writes it, but it was refused ({reason}); load "
            "it there and pass the Data object."
        ) from error
    fields, slices = content[:2] if isinstance(content, tuple) and len(content) > 1 else (content, None)
    fields = fields.to_dict() if isinstance(fields, Data) else fields
    if not isinstance(fields, dict) or "edge_index" not in fields:
        raise ValueError(
            f"'{path}' must hold one graph with edge_index, got {type(fields).__name__}; name another file."
        )
    n_graphs = _n_graphs(slices)
    if n_graphs != 1:
        raise ValueError(f"'{path}' must hold one graph, got {n_graphs}; read such sets with PyTorch Geometric.")
    return Data.from_dict(fields)


def _n_graphs(slices: Any) -> int:
    """The number of graphs that the borders of their edges say."""
    return 1 if not slices else len(slices["edge_index"]) - 1
