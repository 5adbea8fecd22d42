"""The table of published data: description, licence, address, size and checksums.

Planetoid's checksums were computed from the published files. Those of Reddit and of OGB's archives are stated by
independent public projects for the same addresses; we have not computed them. Files without a checksum here keep that
of their first download.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fishergraph._repr import short_repr
from fishergraph.datasets.prepare import METHOD, Preparation

COMPUTED, STATED, FIRST_USE = (
    "computed from the published file",
    "stated by independent public projects, not computed by us",
    "stored at the first download, next to the file",
)


@dataclass(frozen=True)
class File:
    """One file to download: its path in a data folder, its address, its bytes and checksum if known."""

    path: str
    url: str
    size: int | None = None
    sha256: str | None = None
    checksum_from: str = FIRST_USE


@dataclass(frozen=True)
class Source:
    """One published dataset; `n_edges` counts an edge once, `paths` are where a data folder may have it."""

    name: str
    about: str
    n_nodes: int
    n_edges: int
    n_features: int
    n_classes: int
    split: str
    licence: str
    home: str
    reader: str  # a name in `formats.FORMATS`
    files: tuple[File, ...]
    paths: tuple[str, ...]
    preparation: Preparation = METHOD

    __repr__ = short_repr

    @property
    def size(self) -> int | None:
        """The bytes of all files, or None if one is not known."""
        sizes = [file.size for file in self.files if file.size is not None]
        return sum(sizes) if len(sizes) == len(self.files) else None


# --- Planetoid ------------------------------------------------------------------------------------------

PLANETOID_PARTS = ("x", "y", "tx", "ty", "allx", "ally", "graph", "test.index")
_PLANETOID_SUMS = {  # in the order of PLANETOID_PARTS
    "cora": (
        "23cfa55d91c6f624233f5eb7b6e3f141f1bd2b2ae39608a63cf5d084bb27baab",
        "94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1",
        "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a",
        "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad",
        "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543",
        "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71",
        "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d",
        "297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875",
    ),
    "citeseer": (
        "d20de19150741e555de0ed037195630fc194114ebc7fd72ced62810148aa22f6",
        "8ba87e515d8e3ee3cf52f6d2c5b86aa73f11ecad825a808455209ec26cd54924",
        "539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21",
        "55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce",
        "2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668",
        "f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95",
        "d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7",
        "2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4",
    ),
    "pubmed": (
        "fbe9cb5c47200d1b7769a26e579be3b7130b556831f9d850e77c4c74f2599b33",
        "e6c807633307a07ed659249006536a147c7999c797f11a2560752990181b41b3",
        "4eb5f5d0f30f26497eb0ac6ac9719d09c67e284f1ed0385c93f3ef27a671da3d",
        "ee2e0d4819d9fbcc403689c3bf2e49face401b605932f093bc58ab6461130fdd",
        "508e538e2abdccdd54c4d3e9f49d638b4af7107d85845f66ddea5a5152658b7e",
        "0c37bbe3b5014ec365e9d393cf4791925e5ed94fb194305d74f064a8d7b50f0e",
        "5b89f0036ca22909471f1e6558eb42fa06e0c730a577bde5b058b40638f81dc9",
        "b101d421688bbaecbd82e8a18f1e282378d6830f3a37666f28ebc47f844341b5",
    ),
}


def _planetoid(name: str, counts: tuple[int, int, int, int], pyg_name: str, *, licence: str, home: str) -> Source:
    address = "https://raw.githubusercontent.com/kimiyoung/planetoid/master/data"
    names = [f"ind.{name}.{part}" for part in PLANETOID_PARTS]
    files = tuple(
        File(f"planetoid/{file}", f"{address}/{file}", None, checksum, COMPUTED)
        for file, checksum in zip(names, _PLANETOID_SUMS[name], strict=True)
    )
    paths = (".", "planetoid", f"{pyg_name}/raw")
    about, split = "papers, their words and citations", "public: 20 labels per class, 500, 1,000"
    return Source(name, about, *counts, split, licence, home, "planetoid", files, paths)


# --- one archive or one npz each ------------------------------------------------------------------------


def _ogb(name: str, about: str, counts: tuple[int, int, int, int], split: str, licence: str, archive: File) -> Source:
    short = name.removeprefix("ogbn-")
    home = f"https://ogb.stanford.edu/docs/nodeprop/#{name}"
    paths = (archive.path, f"{short}.zip", name, f"ogbn_{short}", short)
    return Source(name, about, *counts, split, licence, home, "ogb", (archive,), paths)


def _shchur(
    name: str, about: str, counts: tuple[int, int, int, int], file: str, pyg_name: str, preparation: Preparation
) -> Source:
    home = "https://github.com/shchur/gnn-benchmark"
    path = f"{name}/{file}"
    files = (File(path, f"{home}/raw/master/data/npz/{file}"),)
    paths = (path, file, f"{pyg_name}/raw/{file}")
    return Source(name, about, *counts, "none", "MIT", home, "shchur", files, paths, preparation)


_COUNTS = Preparation(binary=True)  # word counts; results are usually reported for whether a word occurs
_OGB_FILES = "https://snap.stanford.edu/ogb/data/nodeproppred"
_PLANETOID_HOME = "https://github.com/kimiyoung/planetoid"
_GRAPHS = (
    _planetoid(
        "cora",
        (2708, 5278, 1433, 7),
        "Cora",
        licence="Apache-2.0",
        home="bundled with the package, from graphdatascience 2.2 on PyPI; equal to Planetoid's",
    ),
    _planetoid("citeseer", (3327, 4552, 3703, 6), "CiteSeer", licence="MIT", home=_PLANETOID_HOME),
    _planetoid("pubmed", (19717, 44324, 500, 3), "PubMed", licence="MIT", home=_PLANETOID_HOME),
    Source(
        *("reddit", "posts, linked if one person commented on both", 232965, 57307946, 602, 41),
        *(
            "by day: the first 20 days, then 30% and 70% of the rest",
            "not stated",
            "https://snap.stanford.edu/graphsage/",
        ),
        "reddit",
        (
            File(
                *("reddit/reddit.zip", "https://data.dgl.ai/dataset/reddit.zip", 1397962821),
                *("9a16353c28f8ddd07148fc5ac9b57b818d7911ea0fbe9052d66d49fc32b372bf", STATED),
            ),
        ),
        ("reddit/reddit.zip", "reddit.zip", "reddit", "Reddit"),
    ),
    _ogb(
        *("ogbn-arxiv", "papers on computer science and their citations", (169343, 1157799, 128, 40)),
        *("by year: to 2017, 2018, from 2019", "ODC-BY"),
        File(
            *("ogbn-arxiv/arxiv.zip", f"{_OGB_FILES}/arxiv.zip", 83058288),
            *("49f85c801589ecdcc52cfaca99693aaea7b8af16a9ac3f41dd85a5f3193fe276", STATED),
        ),
    ),
    _ogb(
        *("ogbn-products", "products, linked if bought together", (2449029, 61859140, 100, 47)),
        *("by sales rank: the best sold 8%, the next 2%, the rest", "Amazon licence"),
        File(
            *("ogbn-products/products.zip", f"{_OGB_FILES}/products.zip", None),
            *("5ea0a112edaec2141c0a2a612dd4aed58df97ff3e1ab1a0ca8238f43cbbb50a8", STATED),
        ),
    ),
    _shchur(
        *("amazon-computers", "computers, linked if bought together", (13752, 245861, 767, 10)),
        *("amazon_electronics_computers.npz", "Computers", METHOD),
    ),
    _shchur(
        *("amazon-photo", "cameras, linked if bought together", (7650, 119081, 745, 8)),
        *("amazon_electronics_photo.npz", "Photo", METHOD),
    ),
    _shchur(
        *("coauthor-cs", "authors in computer science", (18333, 81894, 6805, 15)),
        *("ms_academic_cs.npz", "CS", _COUNTS),
    ),
    _shchur(
        *("coauthor-physics", "authors in physics", (34493, 247962, 8415, 5)),
        *("ms_academic_phy.npz", "Physics", _COUNTS),
    ),
)
SOURCES = {source.name: source for source in _GRAPHS}


def published(name: Any) -> Source | None:
    """The entry of the table for a name, whose hyphens may be underscores; None if there is none."""
    return SOURCES.get(name.replace("_", "-")) if isinstance(name, str) else None


# --- sets of graphs -------------------------------------------------------------------------------------

TU_HOME = "https://chrsmrrs.github.io/datasets/"
_TU = ("MUTAG", "PTC_MR", "ENZYMES", "PROTEINS", "NCI1", "DD", "COLLAB", "IMDB-BINARY", "IMDB-MULTI", "REDDIT-BINARY")
TU_FILES = {name: File(f"tu/{name}.zip", f"https://www.chrsmrrs.com/graphkerneldatasets/{name}.zip") for name in _TU}
