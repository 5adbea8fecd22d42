"""Install the built wheel and sdist as users do, in fresh environments, and try them.

    python tools/dist.py dist                      # what `make dist` runs after the build
    python tools/dist.py dist --pythons 3.11 3.13  # these versions, which must be there
    python tools/dist.py dist --tag v0.2.0         # and the version must be that of the tag

Each file is installed without extras and `tools/smoke.py` runs outside of the checkout. The wheel is then installed
with every extra that needs no GPU, or with those of `--extras`. A type checker reads a program that uses the package,
which shows that `py.typed` works from outside. A Python version that was asked for and is not on this machine is an
error; of the usual ones, the last line says which were not tried.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from email import message_from_bytes
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PYTHONS = ("3.11", "3.12", "3.13")
EXTRAS = "plots,umap,cloud,zarr,lance,dask,approximate,automl,torch"
WHEEL_BYTES = 1_650_000  # decision 121
# What a wheel must hold beside the modules, and what it must not.
WANTED = (
    "fishergraph/py.typed",
    "fishergraph/datasets/data/cora.npz",
    "fishergraph/explore/assets/page.js",
    "fishergraph/explore/assets/LICENSES.txt",
)
# What the sdist must hold: the documents and the tests are built and run from it.
SOURCES = {
    *("src/fishergraph/py.typed", "pyproject.toml", "Makefile", "constraints.txt", "pyright-core.json"),
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CITATION.cff", "LICENSE"),
    *("docs/conf.py", "tests/test_documents.py", "benchmarks/common.py", "results/table1.md", "examples/README.md"),
}
UNWANTED = re.compile(r"^(tests|tools|benchmarks|docs|examples)/|\.(pyc|nbi|nbc)$")
RELATIVE_LINK = re.compile(r"\]\((?!https?://|#)[^)]*\)")
TYPED = """\
from fishergraph import FisherEmbedding
reveal_type(FisherEmbedding(n_layers=1).n_layers)
FisherEmbedding(n_layer=1)
"""


def main() -> None:
    arguments = parse()
    wheel, sdist = one_file(arguments.folder, "*.whl"), one_file(arguments.folder, "*.tar.gz")
    version = check_files(wheel, sdist)
    if arguments.tag and arguments.tag != f"v{version}":
        sys.exit(
            f"the tag is {arguments.tag}, but the files are of version {version}: change src/fishergraph/_version.py."
        )
    named = arguments.pythons or PYTHONS
    interpreters = {name: working(f"python{name}") for name in named}
    missing = [name for name, path in interpreters.items() if path is None]
    if arguments.pythons and missing:
        sys.exit(f"{', '.join(f'python{name}' for name in missing)} is not installed, but was asked for.")
    for interpreter in filter(None, interpreters.values()):
        try_file(interpreter, wheel, version)
        try_file(interpreter, sdist, version)
        try_file(interpreter, wheel, version, extras=arguments.extras)
    if missing:
        print(f"NOT TRIED, for they are not on this machine: {', '.join(f'Python {name}' for name in missing)}")
    if len(missing) == len(named):
        sys.exit("no version of Python was tried; name one with --pythons.")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pythons", nargs="+", metavar="VERSION")
    parser.add_argument("--extras", default=EXTRAS)
    parser.add_argument("--tag")
    return parser.parse_args()


def one_file(folder: Path, pattern: str) -> Path:
    files = sorted(folder.glob(pattern))
    if len(files) != 1:
        sys.exit(f"{folder} holds {len(files)} files {pattern}, expected one; remove the folder and build again.")
    return files[0].resolve()


def check_files(wheel: Path, sdist: Path) -> str:
    """The version, if the contents, the size and the long description are what a user needs."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = message_from_bytes(archive.read(next(name for name in names if name.endswith("/METADATA"))))
    missing = [name for name in WANTED if name not in names]
    strange = [name for name in names if UNWANTED.search(name)]
    description = str(metadata.get_payload(decode=True), "utf-8")
    links = RELATIVE_LINK.findall(description)
    faults = {
        "the wheel lacks": missing,
        "the wheel holds": strange,
        "links of the long description are relative:": links,
        f"the wheel has more than {WHEEL_BYTES} bytes:": [wheel.stat().st_size] * (wheel.stat().st_size > WHEEL_BYTES),
    }
    for sentence, found in faults.items():
        if found:
            sys.exit(f"{sentence} {', '.join(map(str, found[:5]))}")
    with tarfile.open(sdist) as archive:
        files = {name.partition("/")[2] for name in archive.getnames()}
    if absent := SOURCES - files:
        sys.exit(f"{sdist.name} lacks {', '.join(sorted(absent))}.")
    for file in (wheel, sdist):
        print(f"{file.name}: {file.stat().st_size / 1e6:.2f} MB")
    return metadata["Version"]


def working(name: str) -> str | None:
    """The path of an interpreter that starts; version managers leave names on the path that do not."""
    path = shutil.which(name)
    return path if path and subprocess.run([path, "--version"], capture_output=True).returncode == 0 else None


def try_file(interpreter: str, file: Path, version: str, extras: str = "") -> None:
    """Install a file in a fresh environment, and run the smoke test and the type checker outside of the checkout."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)

        def run(*command: str | Path) -> str:
            done = subprocess.run([*map(str, command)], cwd=folder, env=environment, capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
            return done.stdout

        run(interpreter, "-m", "venv", folder / "venv")
        python = folder / "venv" / "bin" / "python"
        asked = f"{file}[{extras}]" if extras else str(file)
        run(python, "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", asked)
        run(python, "-m", "pip", "check")
        said = run(python, "-I", HERE / "smoke.py", version, *(extras.split(",") if extras else ()))
        check_types(folder, python)
    print(f"{Path(interpreter).name}, {file.name}{f' with {extras}' if extras else ''}: {said.strip()}")


def check_types(folder: Path, python: Path) -> None:
    """A type checker must know the parameters of the installed package."""
    program = folder / "program.py"
    program.write_text(TYPED)
    command = [sys.executable, "-m", "pyright", "--pythonpath", str(python), str(program)]
    said = subprocess.run(command, cwd=folder, capture_output=True, text=True).stdout
    if 'is "int"' not in said or 'No parameter named "n_layer"' not in said:
        sys.exit(f"py.typed does not work from outside:\n{said}")


if __name__ == "__main__":
    main()
