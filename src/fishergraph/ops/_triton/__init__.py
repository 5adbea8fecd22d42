"""Triton code for the GPU that several operations use: loads, sums over members and lanes, tiles."""
