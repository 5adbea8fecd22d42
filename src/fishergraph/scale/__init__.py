"""Graphs larger than memory: a store of `.npy` files, and the embedding of its nodes in a bounded amount of memory.

arrays       arrays in files, read by rows
store        the folder of a graph, its manifest and its checksums
write        a store from arrays in memory
sets         multisets in files
budget       what a run holds in memory
run          the embedding of a store; run_folder: its files, from which a killed run goes on
stored_pass  the stages of a run as tasks, whose parts can be computed anywhere
tiles        layers that read a few columns of their points at a time
rows         what networks read of a store
embedding    the result, read by rows
"""

from fishergraph.scale.embedding import StoredEmbedding
from fishergraph.scale.store import Store, StoreWriter
from fishergraph.scale.write import write_store

__all__ = ["Store", "StoreWriter", "StoredEmbedding", "write_store"]
