"""The explorer: an embedding as one page to click through and to send.

page         explore, which makes a Page
inputs       what people have → nodes with their graph and their columns
columns      columns of any type, and how they are shown
maps         coordinates in the plane, and samples of very many nodes
neighbours   nearest nodes and clusters
edges        the graph of the page
model        what a fitted model adds; attention, alike: whom nodes attend to, and why two are alike
build        the content of a page, packed for the browser
pack, html   arrays as strings, and the document; its script is built from page/, assets/ holds it
serve        a page on loopback
atlas        a Parquet file for embedding-atlas
"""

from fishergraph.explore.page import Page, explore
from fishergraph.explore.serve import Served

__all__ = ["Page", "Served", "explore"]
