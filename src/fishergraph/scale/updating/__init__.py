"""`update`: a graph that changes, and its embeddings, to the bits of a full transform.

job      update itself
changes  what is asked for, in row numbers; ids, how they are looked up
graph    the changed graph and its multisets, written beside the store
stages   the rows of every stage whose inputs changed
blocks   in which blocks they are computed
patched  rows with others in their place, and their checksums; kernels, compiled loops
report   what was done
"""

from fishergraph.scale.updating.job import update
from fishergraph.scale.updating.report import UpdateReport

__all__ = ["UpdateReport", "update"]
