"""A table of named, typed columns of nodes, for boosted trees and tabular models: `to_table`.

`own` reads the columns of the nodes, `around` makes columns of their neighbours, `table` puts them together.
"""

from fishergraph.tabular.table import to_table

__all__ = ["to_table"]
