"""Multisets as tensors on any device: compressed rows, and derived tensors that kernels read, computed once."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from fishergraph._errors import InputError, InputTypeError
from fishergraph._parallel import cached_attribute
from fishergraph.multiset.members import SetsOfPoints

# A set with more members than this is a hub. It is cut into parts of this size, which programs share.
HUB = 96
# Where the mean set has more than a quarter of that, a hub is one of four times the mean: fewer parts to merge. A chain
# of sums stays as short as `MOST_IN_PART`, and a set of more than `LARGE` members is cut into parts of `HUB` again.
LARGE_MEAN, MOST_IN_PART, LARGE = 24, 1024, 4096
# A very long set is cut finer: in float32 a sum of 96 equal members may be off by 1.5e-6, one of 32 by 5e-7.
LONG, LONG_PART = 2**16, 32

T = TypeVar("T", bound="TensorSets")


def outside_inference(function: Callable) -> Callable:
    """The function outside inference mode: its result is cached, and training may read it later."""

    @wraps(function)
    def run(*args: Any) -> Any:
        if torch.compiler.is_compiling() or not torch.is_inference_mode_enabled():
            return function(*args)
        with torch.inference_mode(False):
            return function(*args)

    return run


class Transpose(NamedTuple):
    """For every point the sets it belongs to, as multisets without weights, and the original indices of the entries."""

    sets: TensorSets
    entries: Tensor


class Hubs(NamedTuple):
    """The large sets: their rows, offsets (hub + 1) into the parts, and the row and entries of each part."""

    rows: Tensor
    offsets: Tensor
    part_row: Tensor
    part_first: Tensor
    part_last: Tensor

    @property
    def n_hubs(self) -> int:
        return self.rows.shape[0]

    @property
    def n_parts(self) -> int:
        return self.part_row.shape[0]


@dataclass(frozen=True, eq=False, repr=False)
class TensorSets(SetsOfPoints):
    """`Multisets` on tensors of one device. Set v holds the points indices[indptr[v]:indptr[v + 1]].

    indptr : int64, (set + 1,); it need not start at zero, so a row block is a view.
    indices : int32 or int64, (entry,).
    weights : float, (entry,), or None if every entry weighs one.

    The transpose, the row of every entry and the hubs are computed at their first use, and kept.
    """

    indptr: Tensor
    indices: Tensor
    weights: Tensor | None
    n_points: int
    _whole: TensorSets | None = None  # the sets this block was cut from
    _first: int = 0  # and its first row there

    def __post_init__(self) -> None:
        for name in ("indptr", "indices", "weights"):  # kernels read consecutive elements
            tensor = getattr(self, name)
            if tensor is not None and not isinstance(tensor, Tensor):
                raise bad_type(name, "be a tensor", tensor, "use torch.as_tensor")
            if tensor is not None and not tensor.is_contiguous():
                object.__setattr__(self, name, tensor.contiguous())

    @property
    def device(self) -> torch.device:
        return self.indptr.device

    @cached_attribute
    def n_entries(self) -> int:
        return int(self.indptr[-1] - self.indptr[0])

    def block(self, rows: slice) -> TensorSets:
        """The sets of consecutive rows, without a copy."""
        start, stop, _ = rows.indices(self.n_sets)
        whole = self if self._whole is None else self._whole
        other = TensorSets(
            self.indptr[start : stop + 1], self.indices, self.weights, self.n_points, whole, self._first + start
        )
        return self._share(other, "sound", "weighed")

    def take(self, rows: Tensor) -> TensorSets:
        """The sets of these rows, in that order (copied)."""
        sizes = self.indptr[rows + 1] - self.indptr[rows]
        indptr = _offsets(sizes)
        shift = torch.repeat_interleave(self.indptr[rows] - indptr[:-1], sizes)
        entries = shift + torch.arange(len(shift), device=self.device)
        weights = None if self.weights is None else self.weights[entries]
        return TensorSets(indptr, self.indices[entries], weights, self.n_points)

    def own_entries(self) -> TensorSets:
        """The sets over their own entries, one point each, counted from zero in their order."""
        start, stop = int(self.indptr[0]), int(self.indptr[-1])
        weights = None if self.weights is None else self.weights[start:stop]
        entries = torch.arange(stop - start, dtype=self.indices.dtype, device=self.device)
        return TensorSets(self.indptr - start, entries, weights, stop - start)

    def sent_weights(self) -> Tensor:
        """The weight with which every point is a member, (point,), float64."""
        from fishergraph.ops.tensor_edges import sent_weights

        return sent_weights(self)

    def weighted(self, weights: Tensor | None) -> TensorSets:
        """The same sets with other weights; the cached properties of their shape are kept."""
        other = TensorSets(self.indptr, self.indices, weights, self.n_points, self._whole, self._first)
        return self._share(other, "sound", "transpose", "rows", "hubs", "n_entries")

    def _share(self, other: T, *names: str) -> T:
        """The other sets, with these cached properties of this one."""
        for name in names:
            if name in self.__dict__:
                object.__setattr__(other, name, self.__dict__[name])  # torch.compile supports this form
        return other

    def to(self, device: Any) -> TensorSets:
        """The sets on another device; these sets if they are on it."""
        if torch.empty(0, device=device).device == self.device:
            return self
        weights = None if self.weights is None else self.weights.to(device)
        other = TensorSets(self.indptr.to(device), self.indices.to(device), weights, self.n_points)
        return self._share(other, "sound", "weighed")

    def prepare(self) -> TensorSets:
        """These sets, with all cached properties computed now, as `torch.compile` requires."""
        for sets in (self, self.transpose.sets):
            _ = sets.sound, sets.weighed, sets.n_entries, sets.rows, sets.hubs
        return self

    @cached_attribute
    def sound(self) -> bool:
        """True, or an error: kernels do not check indices."""
        indptr, indices = self.indptr, self.indices
        if indptr.dtype != torch.int64 or indptr.ndim != 1 or len(indptr) < 1:
            raise bad_input("indptr", "be int64 of shape (set + 1,)", shown(indptr), "cast it")
        if indices.dtype not in (torch.int32, torch.int64) or indices.ndim != 1:
            raise bad_input("indices", "be int32 or int64 of shape (entry,)", shown(indices), "cast them")
        check_device(indices, indptr.device, "indices", "indptr")
        first, last = int(indptr[0]), int(indptr[-1])
        if first < 0 or last > len(indices) or bool((torch.diff(indptr) < 0).any()):
            raise bad_input(
                "indptr",
                f"rise from set to set up to at most the {len(indices)} indices",
                f"{first} … {last}",
                "count the members of each set with torch.cumsum",
            )
        check_range(indices[first:last], self.n_points, "members")
        return True

    @cached_attribute
    def weighed(self) -> bool:
        """True, or an error: there is one weight for each entry, finite and not negative, or no weights."""
        check_weights(self)
        if self.weights is not None:
            check_values(self.weights)
        return True

    @cached_attribute
    @outside_inference
    def rows(self) -> Tensor:
        """The set of every entry, (entry,), int64."""
        sizes = torch.diff(self.indptr)
        return torch.repeat_interleave(torch.arange(self.n_sets, device=self.device), sizes, output_size=self.n_entries)

    @cached_attribute
    @outside_inference
    def transpose(self) -> Transpose:
        """The entries in the order of their points (a stable sort, so the order is the same everywhere)."""
        first, last = int(self.indptr[0]), int(self.indptr[-1])
        points, order = torch.sort(self.indices[first:last], stable=True)
        borders = torch.arange(self.n_points + 1, device=self.device, dtype=points.dtype)
        indptr, rows = torch.searchsorted(points, borders), self.rows[order].to(self.indices.dtype)
        sets = TensorSets(indptr, rows, None, self.n_sets)
        sets.__dict__["n_entries"] = last - first
        return Transpose(sets, order if first == 0 else order + first)

    @cached_attribute
    def hub(self) -> int:
        """The members of the largest set that is not a hub: `HUB`, or more where the mean set is large."""
        if self._whole is not None:
            return self._whole.hub
        mean = self.n_entries // max(self.n_sets, 1)
        return HUB if mean <= LARGE_MEAN else max(HUB, min(MOST_IN_PART, 1 << (4 * mean - 1).bit_length()))

    @cached_attribute
    @outside_inference
    def hubs(self) -> Hubs:
        """The sets of more than `hub` members, cut into parts."""
        if self._whole is not None:
            return self._hubs_of_block(self._whole)
        sizes, most = torch.diff(self.indptr), self.hub
        rows = torch.nonzero(sizes > most).ravel()
        length = torch.where(sizes[rows] > LARGE, HUB, most)
        length = torch.where(sizes[rows] > LONG, min(LONG_PART, HUB), length)
        parts = (sizes[rows] + length - 1) // length
        offsets = _offsets(parts)
        row, step = torch.repeat_interleave(rows, parts), torch.repeat_interleave(length, parts)
        number = torch.arange(len(row), device=self.device) - torch.repeat_interleave(offsets[:-1], parts)
        first = self.indptr[row] + number * step
        last = torch.minimum(first + step, self.indptr[row + 1])
        return Hubs(rows, offsets, row, first, last)

    @cached_attribute
    def _hub_lists(self) -> tuple[list[int], list[int]]:
        """The hubs' rows and offsets on the host, so that a block needs no device synchronisation."""
        return self.hubs.rows.tolist(), self.hubs.offsets.tolist()

    def _hubs_of_block(self, whole: TensorSets) -> Hubs:
        """Those of the whole that lie in this block, with rows counted from its first."""
        rows, offsets = whole._hub_lists
        start, stop = (bisect_left(rows, self._first + n) for n in (0, self.n_sets))
        a, b = offsets[start], offsets[stop]
        return Hubs(
            whole.hubs.rows[start:stop] - self._first,
            whole.hubs.offsets[start : stop + 1] - a,
            whole.hubs.part_row[a:b] - self._first,
            whole.hubs.part_first[a:b],
            whole.hubs.part_last[a:b],
        )

    def cut(self, first: int, last: int) -> TensorSets:
        """The sets first … last − 1, with entries that start at zero."""
        if first == 0 and last == self.n_sets and self.n_entries == self.indices.shape[0]:
            return self
        indptr = self.indptr[first : last + 1]
        start, stop = int(indptr[0]), int(indptr[-1])
        weights = None if self.weights is None else self.weights[start:stop]
        return TensorSets(indptr - start, self.indices[start:stop], weights, self.n_points)

    def pack(self, *, transpose: bool) -> list[Tensor]:
        """These sets without weights as a list of tensors, for operators; `unpack` is the inverse."""
        packed = [self.indptr, self.indices, *self.hubs]
        if transpose:
            back = self.transpose
            packed += [back.entries, back.sets.indptr, back.sets.indices, *back.sets.hubs]
        return packed


def unpack(packed: Sequence[Tensor], weights: Tensor | None, n_points: int) -> TensorSets:
    """The inverse of `pack`, of sets whose entries start at zero."""
    sets = TensorSets(packed[0], packed[1], weights, n_points)
    sets.__dict__.update(hubs=Hubs(*packed[2:7]), n_entries=packed[1].shape[0])
    if len(packed) > 7:
        sets.__dict__["transpose"] = Transpose(unpack(packed[8:], None, sets.n_sets), packed[7])
    return sets


def entries_of(sets: TensorSets, values: Tensor) -> Tensor:
    """The rows of a per-entry tensor that belong to these sets."""
    if sets.n_entries == values.shape[0]:
        return values
    first = int(sets.indptr[0])
    return values[first : first + sets.n_entries]


def _offsets(sizes: Tensor) -> Tensor:
    """0, s_0, s_0 + s_1, …, int64."""
    offsets = torch.zeros(len(sizes) + 1, dtype=torch.int64, device=sizes.device)
    torch.cumsum(sizes, 0, out=offsets[1:])
    return offsets


def bad_input(parameter: str, expected: str, got: object, advice: str) -> InputError:
    """The error "parameter must expected, got …; advice."."""
    return InputError(parameter=parameter, expected=expected, got=str(got), advice=advice)


def bad_type(parameter: str, expected: str, value: object, advice: str) -> InputTypeError:
    """The same for a value of a wrong type."""
    return InputTypeError(parameter=parameter, expected=expected, got=type(value).__name__, advice=advice)


def check_device(tensor: Tensor, device: torch.device, name: str, like: str) -> None:
    """Raise unless the tensor is on that device."""
    if tensor.device != device:
        raise bad_input(name, f"be on {device} like {like}", tensor.device, "move it there")


def shown(tensor: Tensor) -> str:
    """The dtype and shape of a tensor in a message."""
    return f"{tensor.dtype} of {tuple(tensor.shape)}"


def check_range(indices: Tensor, n: int | None, what: str) -> int:
    """n, or the largest index plus one if it is None; no index may lie outside."""
    low, high = (int(indices.min()), int(indices.max())) if len(indices) else (0, -1)
    count = high + 1 if n is None else int(n)
    if low < 0 or high >= count:
        raise bad_input(f"{what} of the edges", f"be 0 … {count - 1}", f"{low} … {high}", "number the nodes by rows")
    return count


def check_sets(sets: TensorSets) -> TensorSets:
    """The sets, or an error if their shape or their weights are invalid."""
    _ = sets.sound, sets.weighed
    return sets


def check_values(weights: Tensor) -> None:
    """Raise unless the weights are not negative and small enough for sums in float32."""
    if not bool(((weights >= 0) & (weights <= 1e30)).all()):
        ends = "minimum {:g} and maximum {:g}".format(*map(float, torch.aminmax(weights.detach())))
        raise bad_input("weights", "be finite and at least 0", f"{ends} (1e+30 at most)", "clip or drop them")


def check_weights(sets: TensorSets) -> None:
    """Raise unless there is one float for each entry, on the same device; their values are not checked."""
    weights, n_entries = sets.weights, len(sets.indices)
    if weights is None:
        return
    if weights.shape != sets.indices.shape or not weights.is_floating_point():
        raise bad_input(
            "weights", f"hold one float for each of the {n_entries} entries", shown(weights), "pass such weights"
        )
    check_device(weights, sets.device, "weights", "the sets")
