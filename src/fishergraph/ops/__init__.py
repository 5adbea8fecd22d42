"""The engine room under room 3: one signature, several backends, one registry."""

from fishergraph.ops.registry import Backend, Responsibilities, choose_backend, known_backends

__all__ = ["Backend", "Responsibilities", "choose_backend", "known_backends"]
