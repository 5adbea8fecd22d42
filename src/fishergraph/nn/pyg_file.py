"""The processed files of PyTorch Geometric's datasets, read without running what is in them."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data
from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
from torch_geometric.data.storage import GlobalStorage

from fishergraph._errors import FileFormatError
from fishergraph.io.files import check_readable

# The parts of a Data object; making them from a file runs their constructors and nothing else.
_ADMITTED = [Data, DataEdgeAttr, DataTensorAttr, GlobalStorage]


_EXPECTED = "a processed file of one graph, as PyTorch Geometric's datasets write it"


def load_processed(path: Path) -> Data:
    """The one graph of a processed file: `(data, slices)`, `(fields, slices, class)`, or a `Data` as it is."""
    content = _load(path)
    fields, slices = content[:2] if isinstance(content, tuple) and len(content) > 1 else (content, None)
    fields = fields.to_dict() if isinstance(fields, Data) else fields
    if not isinstance(fields, dict) or "edge_index" not in fields or not all(isinstance(key, str) for key in fields):
        raise FileFormatError(
            f"'{path}' must hold one graph with edge_index, got {type(fields).__name__}; name another file.",
            path=path,
        )
    n_graphs = _n_graphs(slices)
    if n_graphs != 1:
        text = f"'{path}' must hold one graph, got {n_graphs}; read such sets with PyTorch Geometric."
        raise FileFormatError(text, path=path)
    return Data.from_dict(fields)


def _load(path: Path) -> Any:
    """The tensors and containers of a file; the messages of PyTorch are not quoted, for they advise to run the file."""
    check_readable(path)
    try:
        _check_stored(path)
        admitted = torch.serialization.get_safe_globals()  # which the end of `safe_globals` would forget
        with torch.serialization.safe_globals([kind for kind in _ADMITTED if kind not in admitted]):
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a file of other content can fail in any way
        named = re.search(r"Unsupported (?:global: GLOBAL|class) (\S+)", str(error))
        reason = f"it names {named[1]}, which is not one of its parts" if named else "it is damaged or of another kind"
        raise FileFormatError(
            f"'{path}' must be {_EXPECTED}, but {reason}. Make it again, or pass the Data object itself.",
            path=path,
        ) from error


def _check_stored(path: Path) -> None:
    """Raise for a zip file with packed members, which PyTorch does not write: a small one may unpack to any size."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            if any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist()):
                raise ValueError("packed members")


def _n_graphs(slices: Any) -> int:
    """The number of graphs that the borders of their edges say; 0 where they cannot be read."""
    if slices is None or (isinstance(slices, dict) and not slices):
        return 1
    borders = slices.get("edge_index") if isinstance(slices, dict) else None
    return borders.numel() - 1 if isinstance(borders, torch.Tensor) else 0
