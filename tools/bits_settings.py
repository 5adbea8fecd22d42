"""The settings that tools/bits.py runs, as plain values under today's parameter names.

The names are those of the recorded hashes. When the interface changes, translate tools/bits_builders.py and leave this
file as it is. A multiset and a family are pairs (name, options).
"""

from __future__ import annotations

from typing import Any

Settings = dict[str, Any]

SMALL_NODE: Settings = {"n_layers": 2, "n_anchors": 3, "dim": 16}
SMALL_SET: Settings = {"n_anchors": 4, "dim": 16}
SMALL_GRAPH: Settings = {"n_layers": 2, "n_anchors": 3, "dim": 12, "graph_anchors": 8}
SMALL_NET: Settings = {"n_layers": 2, "n_anchors": 3, "dim": 12, "max_epochs": 4}

FAMILIES = ("gaussian-mixture", "diagonal-mixture", "gaussian", "von-mises-fisher", "multinomial")

MULTISETS: dict[str, Settings] = {
    "neighbourhood": {"multiset": ("neighbourhood", {})},
    "open-neighbourhood": {"multiset": ("open-neighbourhood", {})},
    "out-neighbours": {"multiset": ("neighbourhood", {"direction": "out"})},
    "both-directions": {"multiset": ("neighbourhood", {"direction": "both"})},
    "differences": {"multiset": ("differences", {})},
    "differences-both": {"multiset": ("differences", {"direction": "both"})},
    "hops": {"multiset": ("hops", {})},
    "hops-options": {"multiset": ("hops", {"k": 3, "decay": 0.5, "members": 16, "seed": 1})},
    "pagerank": {"multiset": ("pagerank", {})},
    "pagerank-options": {"multiset": ("pagerank", {"teleport": 0.05, "members": 16})},
    "heat": {"multiset": ("heat", {})},
    "heat-options": {"multiset": ("heat", {"time": 2.0, "members": None})},
    "step-average": {"multiset": ("step-average", {})},
    "step-average-options": {"multiset": ("step-average", {"steps": 4, "root": 0.2})},
    "pairs": {"multiset": ("pairs", {})},
    "paths": {"multiset": ("paths", {})},
    "paths-options": {"multiset": ("paths", {"length": 3, "max_paths": 8, "seed": 1})},
    "tuples": {"multiset": ("tuples", {})},
    "uniform-weights": {"weights": "uniform"},
    "symmetric-weights": {"weights": "symmetric"},
    "pagerank-symmetric": {"multiset": ("pagerank", {}), "weights": "symmetric"},
    "undirected": {"undirected": True},
}

# What a layer does with a multiset: for nodes, sets and graphs alike.
LAYER: dict[str, Settings] = {
    "defaults": {},
    "balanced": {"e_step": "balanced"},
    "balanced-3-iterations": {"e_step": "balanced", "n_iter": 3},
    "unbalanced": {"e_step": "unbalanced"},
    "unbalanced-weak": {"e_step": "unbalanced", "column_penalty": 0.1, "n_iter": 3, "prior": 0.5},
    "no-iteration": {"n_iter": 0},
    "3-iterations": {"n_iter": 3},
    "prior": {"prior": 0.5},
    "no-prior": {"prior": 0.0},
    "prior-3-iterations": {"prior": 0.5, "n_iter": 3},
    "spherical-anchors": {"anchor_method": "spherical", "normalize": True},
    "em-anchors": {"anchor_method": "em"},
    "random-anchors": {"anchor_method": "random"},
    "one-anchor": {"n_anchors": 1},
    "variance": {"variance": 0.05},
    "sharpness": {"sharpness": 0.7},
    "counts": {"counts": True},
    "no-counts": {"counts": False},
    "identity-kernel": {"kernel": "identity"},
    "identity-kernel-counts": {"kernel": "identity", "counts": True},
    "bandwidth": {"bandwidth": 0.6},
    "not-normalized": {"normalize": False},
    "normalized": {"normalize": True},
    "few-samples": {"max_samples": 100},
    "scipy": {"backend": "scipy"},
    "torch": {"backend": "torch"},
}

FAMILY_OPTIONS: dict[str, Settings] = {
    family + suffix: {"family": (family, options), **more}
    for family in FAMILIES
    for suffix, options, more in (
        ("", {}, {}),
        ("-exact", {"fisher": "exact"}, {}),
        ("-score", {"tangent": "score"}, {}),
        ("-exact-score", {"fisher": "exact", "tangent": "score"}, {}),
        ("-power", {"power": 0.5}, {}),
        ("-unit", {"unit": True}, {}),
        ("-3-iterations", {}, {"n_iter": 3, "prior": 0.5}),
        ("-balanced", {}, {"e_step": "balanced"}),
        ("-identity-counts", {}, {"kernel": "identity", "counts": True}),
        ("-scipy", {}, {"backend": "scipy"}),
    )
    if family + suffix != "gaussian-identity-counts"  # its points would be too wide for a full covariance
} | {"multinomial-smoothing": {"family": ("multinomial", {"smoothing": 0.1})}}

NODE: dict[str, Settings] = {
    **MULTISETS,
    **LAYER,
    "no-walk": {"teleport": None},
    "walk-teleport": {"teleport": 0.3},
    "no-walk-not-normalized": {"teleport": None, "normalize": False},
    "block-weights": {"block_weights": [1.0, 0.0, 2.0, 0.5, 1.0, 0.5, 0.0]},
    "last-block": {"block_weights": [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]},
    "no-layer": {"n_layers": 0},
    "three-layers": {"n_layers": 3},
    "wide": {"dim": 300, "n_anchors": 6, "n_layers": 1},
    "published-code": {"attention": "reference", "bandwidth": 1.0},
    "published-code-counts": {"attention": "reference", "counts": True, "normalize": False},
    "published-code-scipy": {"attention": "reference", "backend": "scipy", "n_layers": 1},
    "pairs-3-iterations": {"multiset": ("pairs", {}), "n_iter": 3, "normalize": False},
    "paths-balanced": {"multiset": ("paths", {}), "e_step": "balanced", "counts": True},
    "paths-diagonal": {"multiset": ("paths", {}), "family": ("diagonal-mixture", {})},
    "hops-balanced": {"multiset": ("hops", {}), "e_step": "balanced"},
    "pagerank-scipy": {"multiset": ("pagerank", {}), "backend": "scipy"},
}

SET: dict[str, Settings] = {
    **LAYER,
    "identity-input": {"input_map": "identity"},
    "exp-input": {"input_map": "exp"},
    "standardize-input-normalized": {"input_map": "standardize", "normalize": True},
    "identity-input-normalized": {"input_map": "identity", "normalize": True},
    "exp-input-normalized": {"input_map": "exp", "normalize": True},
    "pooling": {"n_anchors": 1, "prior": 0.0, "kernel": "identity"},
}

# Cases keep the names they were first recorded under.
READINGS = {"counts": "counts", "shares": "weights", "means": "means", "both": "both"}

GRAPH: dict[str, Settings] = {
    **{name: MULTISETS[name] for name in ("open-neighbourhood", "hops", "pagerank", "heat", "step-average")},
    **{name: MULTISETS[name] for name in ("pairs", "paths", "tuples", "symmetric-weights", "undirected")},
    **{f"readout-{name}": {"readout": reading} for name, reading in READINGS.items()},
    **{f"exp-readout-{name}": {"readout": name, "graph_kernel": "exp", "graph_dim": 10} for name in ("counts", "both")},
    **{f"inputs-{name}": {"inputs": [name]} for name in ("features", "tags", "edge-tags", "degrees", "cores")},
    **{f"readout-{name}": {"readout": "means", "graph_family": (name, {})} for name in FAMILIES[:4]},
    **{f"{name}-nodes": {"family": (name, {})} for name in FAMILIES[:4]},
    "multinomial-nodes": {"family": ("multinomial", {}), "inputs": ["tags", "degrees"]},
    **LAYER,
    "both-3-iterations": {"readout": "both", "n_iter": 3, "prior": 0.5},
    "both-balanced": {"readout": "both", "e_step": "balanced"},
    "unit-blocks": {"unit_blocks": True},
    "block-weights": {"block_weights": [0.0, 1.0, 0.5]},
    "readout-sharpness": {"graph_sharpness": 0.6},
    "no-layer": {"n_layers": 0},
}

CLASSIFIER: dict[str, Settings] = {
    "defaults": {},
    **{f"{head}-head": {"head": head} for head in ("relu", "linear")},
    **{family: {"family": (family, {})} for family in FAMILIES[1:]},
    **{name: MULTISETS[name] for name in ("pagerank", "hops", "pairs", "paths", "tuples", "symmetric-weights")},
    "balanced": {"e_step": "balanced"},
    "3-iterations": {"n_iter": 3, "prior": 0.5},
    "last-layer": {"jk": "last"},
    "two-heads": {"heads": 2, "variance": 0.1},
    "random-init": {"init": "random", "normalize": False},
    "batches": {"batch_size": 32, "fan_out": 3},
    "cosine": {"schedule": "cosine", "dropout": 0.0},
}

# Layers of PyTorch Geometric, in their own parameter names.
CONV: dict[str, Settings] = {
    **{f"{head}-head": {"head": head} for head in ("linear", "relu", "nystrom", "identity")},
    **{f"{family}-{head}": {"family": (family, {}), "head": head} for family in FAMILIES[1:] for head in ("linear",)},
    **{f"{family}-score": {"family": (family, {"tangent": "score"}), "head": "identity"} for family in FAMILIES[1:]},
    **{f"{family}-3-steps": {"family": (family, {}), "num_em_steps": 3, "prior": 0.5} for family in FAMILIES[1:]},
    "3-steps": {"num_em_steps": 3},
    "3-steps-prior-identity": {"num_em_steps": 3, "prior": 0.5, "head": "identity"},
    "balanced": {"e_step": "balanced"},
    "unbalanced-3-steps": {"e_step": "unbalanced", "column_penalty": 0.3, "num_em_steps": 3},
    "two-heads": {"heads": 2, "mixture_bias": True, "counts": True},
    "two-heads-mean": {"heads": 2, "concat": False, "residual": True},
    "prior-variance": {"prior": 0.5, "variance": 0.1, "bias": False},
    "not-normalized": {"normalize": False},
    "symmetric-weights": {"weights": "symmetric"},
    "no-loops": {"add_self_loops": False, "weights": "uniform"},
    "member-dropout": {"dropout": 0.3},
    "one-anchor": {"num_anchors": 1},
    "plain-linear": {"backend": "torch"},
    "plain-nystrom-3-steps": {"backend": "torch", "head": "nystrom", "num_em_steps": 3},
    "plain-balanced": {"backend": "torch", "e_step": "balanced"},
}

NET: dict[str, Settings] = {
    "defaults": {},
    "relu": {"head": "relu", "dropout": 0.3, "member_dropout": 0.2},
    "no-input-map": {"input_map": False, "jk": "last"},
    "multinomial": {"family": ("multinomial", {})},
    "diagonal-mixture": {"family": ("diagonal-mixture", {})},
    "near": {"train": {"near": True}},
    "batches": {"train": {"batch_size": 64, "num_neighbors": 4}},
    "bfloat16": {"train": {"amp": True}},
}

EM: dict[str, Settings] = {
    "posterior": {},
    "no-iteration": {"n_iter": 0},
    "3-iterations": {"n_iter": 3},
    "prior-3-iterations": {"n_iter": 3, "prior": 0.5},
    "balanced": {"e_step": "balanced"},
    "balanced-3-iterations": {"e_step": "balanced", "n_iter": 3},
    "unbalanced": {"e_step": "unbalanced", "column_penalty": 0.3, "prior": 0.5},
    "scipy": {"backend": "scipy"},
    "torch": {"backend": "torch"},
    "torch-3-iterations": {"backend": "torch", "n_iter": 3},
}

# The bundled graph, at the sizes people use.
CORA: dict[str, Settings] = {
    "defaults": {},
    "published-code": {"attention": "reference", "bandwidth": 1.0},
    "pagerank": {"multiset": ("pagerank", {}), "dim": 64},
    "structure": {"structure": "projection"},
}
