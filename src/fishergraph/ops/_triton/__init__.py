"""Triton code for the GPU that several operations share: loads, sums over members and lanes, tiles."""
