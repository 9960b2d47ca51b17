.PHONY: demo test check fast lock clean
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PARALLEL := $(BIN)/pytest -n 2 --dist worksteal

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet uv==0.13.7
	$(BIN)/uv pip sync --quiet --compile-bytecode --python $(BIN)/python requirements.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	$(BIN)/python -m compileall -q src
	touch $(READY)

demo: $(READY)  ## embedded Spark: the scaler follows a compressed cosine for two minutes; then the table and the picture
	$(BIN)/sluice run wordcount --engine spark --workload cosine --workload-set minutes=90 \
		--duration 120 --interval 5 --guard cooldown_s=5 --seed 1 --out demo-out

check: $(READY)  ## style, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	# the oldest Python; what needs numpy returns Any there, because its types are for newer ones
	$(BIN)/mypy --python-version 3.10 --no-warn-return-any --no-warn-unused-ignores
	$(BIN)/lint-imports

test: check  ## everything CI runs; the tests on Spark share one session and one cluster, so they run in one process
	$(PARALLEL) -m "not spark"
	$(BIN)/pytest -m spark

fast: $(READY)  ## the quick tests that need no Spark
	$(PARALLEL) -m "not spark and not slow"

lock: ## resolve the versions anew
	$(BIN)/uv pip compile --quiet --extra dev --generate-hashes --no-header --no-annotate -o requirements.lock pyproject.toml

clean:
	rm -rf $(VENV) demo-out
