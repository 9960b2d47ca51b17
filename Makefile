ON_SPARK := test-session test-answers test-cluster test-processes
.PHONY: demo demo-kafka test test-plain test-kafka $(ON_SPARK) check fast lock clean
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
CLASSES := $(VENV)/spark.jsa
PARALLEL := $(BIN)/pytest -n 2 --dist loadfile
# collecting all tests takes as long as some of them
FILES_ON_SPARK = $(shell grep -rlE "mark\.(spark|kafka)" tests --include="test_*.py")

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

demo-kafka: $(READY)  ## the same pipeline with its topics on a real broker, which is started and ended here
	$(BIN)/sluice kafka up --home demo-kafka-out/broker
	$(BIN)/sluice run wordcount --engine spark --policy ds2 --workload cosine --workload-set minutes=90 \
		--topics kafka://$$($(BIN)/sluice kafka status --home demo-kafka-out/broker --json | \
		$(BIN)/python -c "import json, sys; print(json.load(sys.stdin)['bootstrap'])") \
		--duration 120 --interval 5 --guard cooldown_s=5 --seed 1 --out demo-kafka-out; \
		status=$$?; $(BIN)/sluice kafka down --home demo-kafka-out/broker; exit $$status

check: $(READY)  ## style, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	# the oldest Python; what needs numpy returns Any there, because its types are for newer ones
	$(BIN)/mypy --python-version 3.10 --no-warn-return-any --no-warn-unused-ignores
	$(BIN)/lint-imports

test: $(READY)  ## everything CI runs, side by side: tests on Spark wait more than they compute, the others fill the time
	$(MAKE) --jobs=7 --output-sync=target $(ON_SPARK) test-kafka check test-plain

test-plain: $(READY)  ## tests that need no Spark
	nice $(PARALLEL) -m "not spark"

$(CLASSES): $(READY)
	$(BIN)/python -m sluice.testing.class_archive

$(ON_SPARK): test-%: $(CLASSES)  ## tests on Spark by what they share; tests/conftest.py says which
	$(BIN)/pytest -m "$* and not kafka" $(FILES_ON_SPARK)

test-kafka: $(CLASSES)  ## tests over a real broker
	$(BIN)/pytest -m kafka $(FILES_ON_SPARK)

fast: $(READY)  ## the quick tests that need no Spark
	$(PARALLEL) -m "not spark and not slow"

lock: ## resolve the versions anew
	$(BIN)/uv pip compile --quiet --extra dev --generate-hashes --no-header --no-annotate -o requirements.lock pyproject.toml

clean:
	rm -rf $(VENV) demo-out demo-kafka-out
