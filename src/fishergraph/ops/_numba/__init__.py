"""Compiled code for the CPU that several operations use: vectors, sums over members, tasks for threads."""
