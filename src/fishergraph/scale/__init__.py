"""Graphs larger than memory: a store of `.npy` files, and the embedding of its nodes in a bounded amount of memory.

arrays       arrays in files, read by rows
store        the folder of a graph, its manifest and its checksums
write        a store from arrays in memory
sets         multisets in files
budget       what a run holds in memory
sizes        the files of a run, counted beforehand
planning     what a run takes; work, of each stage; probe, measured on this machine
run          the embedding of a store; run_folder: its files, from which a killed run goes on
stored_pass  the stages of a run as tasks, whose parts can be computed anywhere
tiles        layers that read a few columns of their points at a time
embedding    the result, read by rows
"""

from fishergraph.scale.embedding import StoredEmbedding
from fishergraph.scale.planning import Plan, plan
from fishergraph.scale.sizes import GraphSize
from fishergraph.scale.store import Store, StoreWriter
from fishergraph.scale.write import write_store

__all__ = ["GraphSize", "Plan", "Store", "StoreWriter", "StoredEmbedding", "plan", "write_store"]
