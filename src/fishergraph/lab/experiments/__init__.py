"""The experiments of the paper on graphs: specifications → plan → rows of JSON lines → tables.

specs      the methods of Table 1: settings, grids and protocols; the published numbers are in report
plan       what a method on a graph needs next, as a function of its rows
runner     jobs in processes; no method gets a test label
report     the tables, and the records of Figure 4
"""
