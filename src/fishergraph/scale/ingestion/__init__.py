"""`fishergraph ingest`: files of edges and nodes of any size become a store, within a budget of memory.

places     paths, folders, patterns and URLs of files
tables     Parquet, CSV and TSV in batches
matrices   .npy and .npz as streams
sources    what edges and nodes are read from, by layout
scratch    ids and weights on disk
ids        from ids to row numbers
rows       the external counting sort
features   ids and features, written to the store
job        `ingest`, all of it in order
"""

from fishergraph.scale.ingestion.job import ingest

__all__ = ["ingest"]
