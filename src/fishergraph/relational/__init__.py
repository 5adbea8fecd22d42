"""Several kinds of nodes and edges: one block per relation, and the points that the relations of a node make together.

    K(v, v') = Σ_b w_b ⟨ψ_b(v), ψ_b(v')⟩    over the blocks b of a type: its features, and each of its relations (Eq. 2)

stack   RelationalStack: the settings, and what was learned, by type and by relation
passes  RelationalPass: its stages, one after the other
"""

from fishergraph.relational.passes import RelationalData, RelationalPass
from fishergraph.relational.stack import Layout, NodeType, RelationalStack

__all__ = ["Layout", "NodeType", "RelationalData", "RelationalPass", "RelationalStack"]
