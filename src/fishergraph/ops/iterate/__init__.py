"""EM iterations: E-steps at the means of every multiset and M-steps in turn (Eq. 14), and the gradients."""
