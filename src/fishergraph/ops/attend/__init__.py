"""The M-step: the means of every multiset from responsibilities (Eq. 17), and the gradients."""
