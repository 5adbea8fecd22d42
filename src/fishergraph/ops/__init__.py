"""The operations below `em/`: a folder for each, a file per engine in it, and one table of engines."""

from fishergraph.ops.engine import ENGINES, Engine, Responsibilities, choose_engine, named_engine

__all__ = ["ENGINES", "Engine", "Responsibilities", "choose_engine", "named_engine"]
