"""
A figure of the paper
=====================

Section 5.1 of the paper compares distances of embeddings with divergences of densities, on simulated mixtures. The
study is part of `fishergraph.lab`; here it runs with a few repeats. `fishergraph lab simulate all` runs all of it,
and `fishergraph lab report` draws the figures.
"""

import tempfile
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt

from fishergraph.lab.figures import FIGURES
from fishergraph.lab.rows import read_rows
from fishergraph.lab.studies import choose_study

study = replace(choose_study("closeness", quick=True), values=(0.1, 0.5, 1, 2, 3, 5, 8))
rows = Path(tempfile.mkdtemp()) / "rows.jsonl"
print(study.run(rows), "cells were run")

# %%
# The squared distance of two embeddings over twice the divergence of the two densities, which are close to each other.
# By theory the exact Fisher matrix gives 1. The paper's approximation Id/p gives 1 where the components lie apart.

records = study.summarize(read_rows(rows))
(panel,) = FIGURES["closeness"]
figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for (_, name), curve in panel.curves.items():
    points = [record for record in records if record["curve"] == name]
    x, y = [record["value"] for record in points], [record["median"] for record in points]
    ax.plot(x, y, curve.line + curve.marker, color=curve.colour, label=curve.label)
ax.axhline(1, color="lightgrey", zorder=0)
ax.set(xscale="log", yscale="log", xlabel=panel.xlabel, ylabel=panel.ylabel)
ax.legend(frameon=False)
plt.show()
