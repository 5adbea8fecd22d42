"""Tables with words, dates and gaps as rows of numbers: `TableEncoder`.

encoder     TableEncoder
columns     any table as Arrow columns of a few types
decide      which kind a column is: KINDS
record      what is learned of a column: the base of all kinds, and the rule of scale
numbers     numbers, booleans, dates, vectors
categories  categories, texts, tags; words: distinct texts, and what is written in them
kernels     compiled hashes of texts and words
schema      Schema, which prints as a small table
faults      what is wrong with a table, reported together
pack        an encoder as JSON and arrays of a model file
"""

from fishergraph.tables.columns import needs_encoder
from fishergraph.tables.encoder import TableEncoder
from fishergraph.tables.schema import Schema, SchemaColumn

__all__ = ["Schema", "SchemaColumn", "TableEncoder", "needs_encoder"]
