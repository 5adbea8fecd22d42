"""Graphs larger than memory: a store of `.npy` files, and the embedding of its nodes in a bounded amount of memory.

arrays       arrays in files, read by rows
store        the folder of a graph, its manifest and its checksums
writer       a new store
write        a store from arrays in memory
ingestion    a store from files of any size; imported when `ingest` is used
sets         multisets in files
memory       sizes of memory, and what there is of it
budget       what a run holds in memory
sizes        the files of a run, counted beforehand
planning     what a run takes; work, of each stage; probe, measured on this machine
run          the embedding of a store; run_folder: its files, from which a killed run goes on
stored_pass  the stages of a run as tasks, whose parts can be computed anywhere
tiles        layers that read a few columns of their points at a time
rows         what networks read of a store
embedding    the result, read by rows
dask_executor, dask_parts, remote  parts on the workers of a cluster, as the coordinator and as a worker see it
finished     a run that has ended, read back from its folder
stage_rows   the values of chosen rows, with the bits of a full run
commit       changes that are made whole or not at all
updating     a graph that changes, and its embeddings; imported when `update` is used
verification  whether a store is whole, or two of them hold the same; compare and report are its parts
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fishergraph.scale.embedding import StoredEmbedding
from fishergraph.scale.report import Verification
from fishergraph.scale.store import Store
from fishergraph.scale.verification import verify
from fishergraph.scale.write import write_store
from fishergraph.scale.writer import StoreWriter

if TYPE_CHECKING:
    from fishergraph.scale.dask_executor import DaskExecutor
    from fishergraph.scale.ingestion import ingest
    from fishergraph.scale.planning import Plan, plan
    from fishergraph.scale.sizes import GraphSize
    from fishergraph.scale.updating import UpdateReport, update

__all__ = ["DaskExecutor", "GraphSize", "Plan", "Store", "StoreWriter", "StoredEmbedding", "UpdateReport"]
__all__ += ["Verification", "ingest", "plan", "update", "verify", "write_store"]

# Names that are imported when they are used.
_HOMES = {"DaskExecutor": "dask_executor", "ingest": "ingestion", "UpdateReport": "updating", "update": "updating"}
_HOMES |= {"GraphSize": "sizes", "Plan": "planning", "plan": "planning"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"fishergraph.scale.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
