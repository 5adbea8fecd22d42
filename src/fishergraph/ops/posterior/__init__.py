"""The first E-step: log α of every point at the anchors, and the gradient."""
