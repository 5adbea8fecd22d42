"""Graphs larger than memory: a store of `.npy` files, and the embedding of its nodes in a bounded amount of memory.

arrays   arrays in files, read by rows
store    the folder of a graph, its manifest and its checksums
write    a store from arrays in memory
"""

from fishergraph.scale.store import Store, StoreWriter
from fishergraph.scale.write import write_store

__all__ = ["Store", "StoreWriter", "write_store"]
