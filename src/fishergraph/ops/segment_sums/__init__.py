"""Weighted sums over the members of multisets, or over rows with the same label."""
