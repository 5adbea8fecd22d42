"""A pass over some rows of the data: `blocks` and `sets`, which rows are computed together; `rows`, their stages."""

from fishergraph.part.blocks import NONE
from fishergraph.part.rows import transform_part
from fishergraph.part.sets import part_sets, rows_within

__all__ = ["NONE", "part_sets", "rows_within", "transform_part"]
