"""Rows divided by their lengths, and the gradient."""
