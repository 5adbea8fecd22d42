"""Experiments: frozen records → rows of JSON lines → tables and figures. No number is typed in between.

rows           a file of rows: appended whole, read back, resumed after a kill
stamp          what a row was made with
study          what every study has: cells, the work of a cell, the table of its rows
simulations    Section 5.1 and Appendix D: embedding distances over KL divergences
closeness      Id/p beside the exact Fisher matrix; Goldberger's approximation beside the divergence
attention      how far from flat the attention is, against the variance
studies        all of them by name

Table 1:

paper          the paper's numbers
specs          a frozen record per method, its grids and protocol
plan           what a column needs next, given its rows: search, choice on validation, final runs
jobs           one fit and its rows; no method is given a test label
runner         jobs in processes, rows as they come, resumed after a kill
memory         the peak of a job
report         rows → tables: ours, the paper's, the difference; components, the records of Figure 4
tsne           the maps of Figure 5
"""
