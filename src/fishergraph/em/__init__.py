"""Project a multiset onto the manifold by expectation-maximisation that starts at the anchors (Eq. 14)."""

from fishergraph.em.learn import learn_anchors, learn_family
from fishergraph.em.means import em_estimate, em_means
from fishergraph.em.settings import EM, posterior

__all__ = ["EM", "em_estimate", "em_means", "learn_anchors", "learn_family", "posterior"]
