# `make demo` and `make test` do all the set-up themselves, in .venv.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo check test lint format bench bench-quick docs dist minimum clean

demo: $(VENV)/installed-demo  ## embed the bundled Cora graph, score it, draw it
	$(BIN)/fishergraph demo

test: $(VENV)/installed-test  ## all tests
	$(BIN)/python -m pytest -n auto --dist worksteal

# The rules, the reference, the contracts of the engines, the properties, and one path through an estimator and a layer.
CHECK := tests/test_architecture.py tests/test_docstrings.py tests/test_path.py tests/test_errors.py \
         tests/test_components.py tests/test_reference.py tests/test_embedding.py tests/test_kernel_map.py \
         tests/ops/test_backends.py tests/em tests/family tests/multiset tests/properties \
         tests/estimators/test_node.py tests/nn/test_conv.py

check: $(VENV)/installed-test  ## some tests, in a minute
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow" $(CHECK)

lint: $(VENV)/installed-test  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/pyright --project pyright-core.json

format: $(VENV)/installed-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/installed-test  ## every benchmark at full size; rows are appended to benchmarks/results
	for script in benchmarks/bench_*.py; do $(BIN)/python $$script || exit 1; done

bench-quick: $(VENV)/installed-test  ## the same on tiny data: do they start?
	$(BIN)/python benchmarks/run_quick.py

docs: $(VENV)/installed-test  ## the site, with every example run, in build/docs/html; needs no network
	rm -rf build/docs docs/api docs/gallery
	$(BIN)/python -m sphinx -W --keep-going -n -q -b html -d build/docs/doctrees docs build/docs/html
	$(BIN)/python tools/check_site.py build/docs/html

# PYTHONS="3.11 3.12" names the versions that must be tried; EXTRAS="plots,zarr" the extras.
dist: $(VENV)/installed-test  ## wheel and sdist, tried in fresh environments
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python tools/dist.py dist $(if $(PYTHONS),--pythons $(PYTHONS)) $(if $(EXTRAS),--extras $(EXTRAS)) $(if $(TAG),--tag $(TAG))

# What needs torch, compilers of other packages or the newest pandas is not tried with the oldest versions. The estimator
# checks of the oldest scikit-learn, which tests/tables imports, want the variable of SciPy.
MINIMUM := tests/test_reference.py tests/test_embedding.py tests/test_graph.py tests/test_tables.py tests/test_files.py \
           tests/em tests/family tests/multiset tests/structural tests/properties tests/estimators/test_node.py tests/cli \
           tests/vectors tests/explain tests/explore tests/plots/test_columns.py

minimum: $(VENV)/installed-test  ## the core tests with the oldest versions that pyproject.toml allows
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python build/minimum
	VIRTUAL_ENV=build/minimum $(BIN)/uv pip install --quiet --resolution lowest-direct '.[plots,zarr,cloud,dask]'
	VIRTUAL_ENV=build/minimum $(BIN)/uv pip install --quiet pytest pytest-xdist hypothesis array-api-strict networkx \
	  igraph pandas polars duckdb numpydoc
	build/minimum/bin/python -m pytest -n auto --dist worksteal -m "not slow" $(MINIMUM)
	SCIPY_ARRAY_API=1 build/minimum/bin/python -m pytest -n auto --dist worksteal -m "not slow" tests/tables

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "fishergraph needs Python 3.11 or newer, got $$($(PYTHON) --version); run: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed-demo: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --editable '.[plots]'
	touch $@

$(VENV)/installed-test: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --editable '.[dev,torch,automl,baselines]'
	touch $@ $(VENV)/installed-demo

clean:
	rm -rf $(VENV) build dist docs/api docs/gallery .pytest_cache .ruff_cache .hypothesis
