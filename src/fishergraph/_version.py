"""The version of this package, and those of the packages that results depend on."""

__version__ = "0.2.0"

_PACKAGES = {
    "numpy": "numpy",
    "scipy": "scipy",
    "sklearn": "scikit-learn",
    "numba": "numba",
    "pyarrow": "pyarrow",
    "torch": "torch",
    "torch_geometric": "torch_geometric",
}


def package_versions() -> dict[str, str | None]:
    """The versions of this package, of Python and of what results depend on; None for what is not installed."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    versions: dict[str, str | None] = {"fishergraph": __version__, "python": platform.python_version()}
    for name, distribution in _PACKAGES.items():
        try:
            versions[name] = version(distribution)
        except PackageNotFoundError:
            versions[name] = None
    return versions
