"""Project a multiset onto the manifold by expectation-maximisation that starts at the anchors (Eq. 14)."""

from fishergraph.em.anchors import learn_anchors
from fishergraph.em.e_step import posterior
from fishergraph.em.learn import learn_family
from fishergraph.em.loop import em_means
from fishergraph.em.m_step import m_step
from fishergraph.em.moments import em_estimate
from fishergraph.em.settings import EM

__all__ = ["EM", "em_estimate", "em_means", "learn_anchors", "learn_family", "m_step", "posterior"]
