"""Compiled code for the CPU that several operations share: vectors, sums over members, tasks for threads."""
