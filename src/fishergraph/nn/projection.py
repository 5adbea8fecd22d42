"""The projection of wide rows before EM: GATConv has one too."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter

from fishergraph._errors import InputError
from fishergraph._validation import MOST_COLUMNS, check_integer
from fishergraph.nn.heads import LinearHead
from fishergraph.nn.rows import check_rows

# "auto" projects rows that are so many times as wide as what they are projected to, and never to fewer columns than
# these. Below, the products that it saves cost less than the one that it adds, or the mixture loses its features.
_RATIO, _LEAST = 4, 64


class Projection(LinearHead):
    """W x of the members, without a bias: rows are divided by their lengths afterwards."""

    def __init__(self, in_channels: int, out_channels: int):
        super().__init__(in_channels, out_channels, bias=False)


def make_projection(project: Any, in_channels: int, out_channels: int | None, *, counts: bool) -> Projection | None:
    """The projection of a layer, if it has one or may get one with the width of its first input.

    `out_channels` are the columns of the output, None if that is φ itself; `counts` says that rows are counts.
    """
    if project is None:
        return None
    if isinstance(project, str) and project == "auto":
        if out_channels is None or counts:
            return None
        width = max(out_channels, _LEAST)
        return Projection(in_channels, width) if in_channels < 0 or is_wide(in_channels, width) else None
    if isinstance(project, (str, bool)):
        expected = "be 'auto', None or a number of columns"
        raise InputError(parameter="project", value=project, expected=expected)
    width = check_integer(project, "project", least=1, most=MOST_COLUMNS)
    if counts:
        expected, advice = "be None for a family of counts", "projected rows are not counts"
        raise InputError(parameter="project", value=project, expected=expected, advice=advice)
    return Projection(in_channels, width)


def is_wide(in_channels: int, width: int) -> bool:
    """Whether "auto" projects such rows to this width."""
    return in_channels >= _RATIO * width


class Projecting(nn.Module):
    """A layer that may project its rows: the first input, or a state, decides if the options do not."""

    project: Any
    projection: Projection | None
    mixture: Any
    head: Any
    _phi_width: Any

    def _projected(self, source: Tensor) -> int:
        """The width of the rows after the projection, which is left out if the first input turns out to be narrow."""
        assert self.projection is not None
        if self.waits() and not is_wide(source.shape[1], self.projection.out_channels):
            check_rows(source, sparse=False)
            self.projection = None
            return source.shape[1]
        self.projection.expect(source.shape[1])
        return self.projection.out_channels

    def waits(self) -> bool:
        """Return whether the width of the first input decides about the projection.

        Returns
        -------
        bool
            True until there was an input, with ``project="auto"`` and ``in_channels=-1``.
        """
        return self.project == "auto" and self.projection is not None and self.projection.in_channels < 0

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        """With ``project="auto"`` the state of a layer without a projection makes this one such a layer."""
        anchors, has_none = state_dict.get(f"{prefix}mixture.anchors"), f"{prefix}projection.weight" not in state_dict
        asked = self.project == "auto" and self.projection is not None
        if asked and has_none and anchors is not None and not isinstance(anchors, UninitializedParameter):
            self.projection = None
            self.mixture.change(anchors.shape[-1])
            if self.head is not None:
                self.head.change(self._phi_width)
        super()._load_from_state_dict(state_dict, prefix, *rest)
