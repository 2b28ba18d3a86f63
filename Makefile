# Every target creates .venv if needed and installs its dependencies. The second call is quick.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

.PHONY: demo test test-full test-lowest coverage fuzz audit check format bench bench-compare studies results docs dist clean

demo: $(VENV)/.bare
	$(BIN)/eblime demo --open

# `test` needs neither torch nor Ray: tests that do are skipped. It leaves out the tests marked slow:
# kills, waits, Ray, a browser, many repetitions. `test-full` runs every test.
test: $(VENV)/.light
	$(ONE_THREAD) $(BIN)/python -m pytest -n auto -m 'not slow'

test-full: $(VENV)/.test
	$(ONE_THREAD) $(BIN)/python -m pytest -n auto

# Measures which lines the tests run, and fails below the floor in pyproject.toml.
coverage: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pytest-cov>=7'
	$(ONE_THREAD) $(BIN)/python -m pytest -n auto -m 'not slow' --cov=eblime --cov-report=term

# Runs the tests with the lowest version of each dependency that pyproject.toml allows. These
# versions have wheels for Python 3.10 and 3.11; set PYTHON=python3.11 if the default is newer.
# Deprecation warnings of old packages are ignored.
test-lowest:
	rm -rf .venv-lowest && $(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python .ci/lowest.py > .venv-lowest/constraints.txt
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check \
		-c .venv-lowest/constraints.txt -e '.[test,arviz,shap,shapiq]'
	$(ONE_THREAD) .venv-lowest/bin/python -m pytest -n auto -m 'not slow' \
		-W ignore::DeprecationWarning

# Searches for some seconds for damaged files that are neither refused nor usable. Linux only.
FUZZ_SECONDS ?= 60
fuzz: $(VENV)/.test $(VENV)/.fuzz
	$(ONE_THREAD) $(BIN)/python tests/fuzz.py $(FUZZ_SECONDS)

# Looks up the installed packages, and the lowest versions that pyproject.toml allows, in the list of
# known vulnerabilities. CVE-2025-3000 is in torch.jit.script, which eblime does not call.
AUDIT := $(BIN)/pip-audit --vulnerability-service osv --ignore-vuln CVE-2025-3000 \
	--ignore-vuln PYSEC-2025-194 --ignore-vuln GHSA-rrmf-rvhw-rf47
audit: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip-audit>=2.9'
	$(BIN)/python .ci/lowest.py > $(VENV)/lowest.txt
	$(AUDIT) --local --skip-editable
	$(AUDIT) --no-deps --disable-pip --requirement $(VENV)/lowest.txt

check: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell

format: $(VENV)/.lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .


bench: $(VENV)/.test $(VENV)/.studies
	for name in imports fit image tabular text batch; do $(BIN)/python -m studies speed-$$name || exit 1; done

REF ?= v0.2.0
# Ten paths beside another version of this repository, such as REF=v0.2.0: ratios of processor time.
bench-compare: $(VENV)/.test $(VENV)/.studies
	$(BIN)/python -m studies speed-releases --ref $(REF)

# `studies` runs every study of the documentation; it can be resumed, and reads data from EBLIME_DATA
# or the network. `results` writes their pages and figures. `python -m studies` lists them.
studies: $(VENV)/.test $(VENV)/.studies
	$(BIN)/python -m studies all

results: $(VENV)/.test $(VENV)/.studies
	$(BIN)/python -m studies pages

# Warnings are errors. The links between pages are checked, and that no page needs the network.
docs: $(VENV)/.docs
	$(ONE_THREAD) $(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html
	$(BIN)/python docs/check_site.py docs/_build/html

# Builds the wheel and the source archive and checks their metadata.
dist: $(VENV)/.release
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*

clean:
	rm -rf $(VENV) .venv-lowest docs/_build docs/_gallery docs/reference/api dist

$(VENV)/.python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "eblime needs Python 3.10 or newer; set PYTHON=")'
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.bare: pyproject.toml $(VENV)/.python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

# One stamp file per extra: `make test` installs the extra [test], and so on.
$(VENV)/.%: pyproject.toml constraints.txt $(VENV)/.python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		-c constraints.txt -e '.[$*]'
	touch $@
