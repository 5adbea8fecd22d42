"""The balanced and unbalanced E-steps (Appendix C): transport between the members of a multiset and the anchors."""
