# Commands for Hatchery on one machine with Python 3.11 or later, git and make. `make demo` runs the demo; `make` without a
# target lists all targets.

SHELL := /bin/sh
.DEFAULT_GOAL := help

# Python interpreter that creates .venv; if empty, the newest installed interpreter from python3.11 to python3.14.
PYTHON ?=
CORES ?= $(shell env -u OMP_NUM_THREADS nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)
EXPERIMENT ?= demo
PYTEST_OPTIONS ?=

# Variables of the user's shell must not affect which modules the commands import, and whether bytecode is written.
unexport PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE

# Snakemake needs a writable folder for its cache before it reads the workflow. If ~/.cache is not
# writable, use a folder in this checkout.
ifneq ($(shell (mkdir -p "$${HOME:?}/.cache" && test -w "$$HOME/.cache") 2>/dev/null && echo yes),yes)
export XDG_CACHE_HOME ?= $(CURDIR)/.snakemake/cache
endif

# Rules call `python` by name, so the environment is first on PATH. The shell expands $PWD, because make would fail for
# some characters in the path.
IN_ENVIRONMENT := PATH="$$PWD/.venv/bin:$$PATH" .venv/bin/python -m

.PHONY: help
help: ## show this list
	@echo "make TARGET, where TARGET is one of"
	@sed -n 's/^\([a-z0-9-]*\):[^#]*## \(.*\)$$/  \1|\2/p' Makefile | awk -F'|' '{ printf "%-22s %s\n", $$1, $$2 }'

.PHONY: env
env: ## create .venv from the lock files, if .venv is missing or outdated
	@PYTHON="$(PYTHON)" sh scripts/install_environment.sh

.PHONY: demo
demo: EXPERIMENT := demo
demo: run ## run the demo experiment and write its page (four to six minutes on two cores)

.PHONY: real
real: EXPERIMENT := real_small
real: run ## run the small experiment on real corpora and write its page

.PHONY: run
run: env ## run EXPERIMENT=name and write its tables and page; CORES=n sets the number of cores
	@$(IN_ENVIRONMENT) snakemake --cores $(CORES) -- "results/$(EXPERIMENT)/index.html"
	@echo "The page is $$PWD/results/$(EXPERIMENT)/index.html"

TARGET ?= results/$(EXPERIMENT)/index.html
.PHONY: why
why: env ## show the jobs that would run for TARGET=file (or EXPERIMENT=name), the reasons and the cost; runs no job
	@PATH="$$PWD/.venv/bin:$$PATH" python scripts/explain.py "$(TARGET)"

RULE ?=
.PHONY: show
show: env ## show RULE=name, and inputs, outputs, settings and resources of one of its jobs for TARGET=file or EXPERIMENT=name
	@PATH="$$PWD/.venv/bin:$$PATH" python scripts/show_rule.py "$(RULE)" "$(TARGET)"

CELL ?=
.PHONY: trace
trace: env ## trace CELL=model/suite/task/metric of EXPERIMENT=name back to the raw data, and compare all checksums
	@PATH="$$PWD/.venv/bin:$$PATH" python scripts/trace.py "results/$(EXPERIMENT)/summary.csv" --cell "$(CELL)" --verify --verify-raw

.PHONY: try
try: env ## query the models of EXPERIMENT=name at a prompt: fill gaps, continue texts, compare two sentences
	@PYTHONPATH="$$PWD/scripts" .venv/bin/python -m hatchery try "$(EXPERIMENT)"

A ?=
B ?=
.PHONY: diff
diff: env ## show in which settings and scores the experiments A=name and B=name differ; ALL=1 also shows differences within noise
	@PYTHONPATH="$$PWD/scripts" .venv/bin/python -m hatchery compare "$(A)" "$(B)" $(if $(ALL),--all)

CHECK_OPTIONS ?=
.PHONY: cluster-check
cluster-check: env ## print the Slurm jobs of EXPERIMENT=name, and test whether Slurm would accept these jobs; submits no job
	@PATH="$$PWD/.venv/bin:$$PATH" python scripts/check_cluster.py --experiment "$(EXPERIMENT)" $(CHECK_OPTIONS)

# The tests of a folder run in one process, because they share fixtures. Only the folders that take longest are divided
# among processes (tests/conftest.py).
# TEST_PROCESSES is the two cores of CI plus 1, because a test that runs the workflow waits for its jobs.
TEST_PROCESSES ?= 3
IN_PROCESSES := -n $(TEST_PROCESSES) --dist loadscope --no-loadscope-reorder

.PHONY: test
test: env ## run all tests that need no cluster, including the slow tests that run the workflow
	@$(IN_ENVIRONMENT) pytest $(IN_PROCESSES) -m "not slurm" $(PYTEST_OPTIONS)

.PHONY: test-fast
test-fast: env ## run the fast tests, each of which takes at most a few seconds
	@$(IN_ENVIRONMENT) pytest $(IN_PROCESSES) -m "not slow" $(PYTEST_OPTIONS)

.PHONY: test-python
test-python: ## run the fast tests with another interpreter, PYTHON=name, in a clone with a separate environment
	@folder=$$(mktemp -d) && git clone --quiet . "$$folder/hatchery" && \
	  $(MAKE) --no-print-directory -C "$$folder/hatchery" test-fast PYTHON="$(PYTHON)"; \
	  status=$$?; rm -rf "$$folder"; exit $$status

.PHONY: test-cluster
test-cluster: env ## run the Slurm tests, which start Slurm with two nodes on this machine (needs root and Debian)
	@$(IN_ENVIRONMENT) pytest -m slurm $(PYTEST_OPTIONS) tests/slurm

TRANSFORMERS_4 := .transformers-4
$(TRANSFORMERS_4)/installed: tests/export/transformers-4.lock
	@rm -rf $(TRANSFORMERS_4)
	@.venv/bin/python -m pip install --quiet --no-deps --require-hashes --target $(TRANSFORMERS_4) --requirement $<
	@touch $@

.PHONY: test-transformers-4
test-transformers-4: env ## test exported models with the version of transformers that BabyLM pins
	@$(MAKE) --no-print-directory $(TRANSFORMERS_4)/installed
	@PYTHONPATH="$$PWD/$(TRANSFORMERS_4)" .venv/bin/python -c "import transformers; print('transformers', transformers.__version__)"
	@PYTHONPATH="$$PWD/$(TRANSFORMERS_4)" $(IN_ENVIRONMENT) pytest $(IN_PROCESSES) -m hub $(PYTEST_OPTIONS) tests/export

# Install other tools that load exported models; Hatchery itself does not need these tools. The tools are tested with both
# versions of transformers at the same time.
TOOLS := .tools
IN_TOOLS = -p no:cacheprovider $(PYTEST_OPTIONS) tests/export/test_in_tools.py
$(TOOLS)/installed: tests/export/tools.lock
	@rm -rf $(TOOLS)
	@.venv/bin/python -m pip install --quiet --no-deps --require-hashes --target $(TOOLS) --requirement $<
	@touch $@

.PHONY: test-tools
test-tools: env ## test exported models in lm-evaluation-harness, minicons, captum, PEFT and the library's Trainer
	@$(MAKE) --no-print-directory $(TOOLS)/installed
	@$(MAKE) --no-print-directory $(TRANSFORMERS_4)/installed
	@PYTHONPATH="$$PWD/$(TRANSFORMERS_4):$$PWD/$(TOOLS)" $(IN_ENVIRONMENT) pytest $(IN_TOOLS) > $(TOOLS)/transformers-4.out 2>&1 & \
	  other=$$!; PYTHONPATH="$$PWD/$(TOOLS)" $(IN_ENVIRONMENT) pytest $(IN_TOOLS); first=$$?; \
	  wait $$other; second=$$?; cat $(TOOLS)/transformers-4.out; exit $$((first | second))

# Install Triton, which only this test needs; PyTorch for CPUs does not install Triton.
TRITON := .triton
$(TRITON)/installed: requirements.lock
	@rm -rf $(TRITON) && mkdir $(TRITON)
	@sed -n '/^triton==/,/# via/p' $< > $(TRITON)/triton.lock
	@.venv/bin/python -m pip install --quiet --no-deps --require-hashes --target $(TRITON) --requirement $(TRITON)/triton.lock
	@touch $@

.PHONY: test-kernels
test-kernels: env ## test the GPU kernels on the CPU, with Triton's interpreter
	@$(MAKE) --no-print-directory $(TRITON)/installed
	@PYTHONPATH="$$PWD/$(TRITON)" TRITON_INTERPRET=1 $(IN_ENVIRONMENT) pytest $(PYTEST_OPTIONS) tests/modeling/test_kernels.py

# Install mutmut, which changes the code, one change at a time, to test the tests.
MUTATION := .mutation
$(MUTATION)/installed: tests/mutation/mutmut.lock
	@rm -rf $(MUTATION)
	@.venv/bin/python -m pip install --quiet --no-deps --require-hashes --target $(MUTATION) --requirement $<
	@touch $@

MODULE ?=
MINUTES ?= 15
.PHONY: test-mutants
test-mutants: env ## put mistakes into MODULE=package/module, one at a time, and list the mistakes that no test detects; MINUTES=15 limits the time
	@$(MAKE) --no-print-directory $(MUTATION)/installed
	@PYTHONPATH="$$PWD/$(MUTATION)" OMP_NUM_THREADS=1 PATH="$$PWD/.venv/bin:$$PATH" \
	  python tests/mutation/run.py "$(MODULE)" --minutes "$(MINUTES)"

SITE := .site
$(SITE)/installed: docs/site/site.lock
	@rm -rf $(SITE)
	@.venv/bin/python -m pip install --quiet --no-deps --require-hashes --target $(SITE) --requirement $<
	@touch $@

.PHONY: site
site: env ## build the documentation as a site with search, which needs no network: .site/html/index.html
	@$(MAKE) --no-print-directory $(SITE)/installed
	@OMP_NUM_THREADS=1 .venv/bin/python docs/site/gallery.py $(SITE)/gallery > /dev/null
	@PYTHONPATH="$$PWD/$(SITE):$$PWD/scripts" .venv/bin/python -m sphinx --quiet --fail-on-warning --keep-going \
	  -j auto -c docs/site -d $(SITE)/doctrees docs $(SITE)/html
	@cp $(SITE)/gallery/figures.html $(SITE)/html/figures.html
	@cp $(SITE)/html/README.html $(SITE)/html/index.html
	@echo "site: $(SITE)/html/index.html"

BENCH_OPTIONS ?=
.PHONY: bench-gpu
bench-gpu: ## measure the speed of a GPU in nine minutes (docs/gpu.md); uses .venv, or PYTHON=name with packages in PYTHONPATH=folder
	@python=.venv/bin/python; [ -x "$$python" ] || python="$(or $(PYTHON),python3)"; \
	  PYTHONPATH="$(PYTHONPATH)" "$$python" benchmarks/gpu.py $(BENCH_OPTIONS)

.PHONY: lint
lint: env ## check style, types and the workflow; changes nothing
	@$(IN_ENVIRONMENT) ruff check
	@$(IN_ENVIRONMENT) ruff format --check
	@$(IN_ENVIRONMENT) snakefmt --check Snakefile
	@$(IN_ENVIRONMENT) mypy
	@$(IN_ENVIRONMENT) snakemake --lint

.PHONY: format
format: env ## fix the style of the Python files and the workflow
	@$(IN_ENVIRONMENT) ruff check --fix
	@$(IN_ENVIRONMENT) ruff format
	@$(IN_ENVIRONMENT) snakefmt Snakefile

.PHONY: schemas
schemas: env ## write workflow/schemas and docs/settings.md again from the settings classes
	@PATH="$$PWD/.venv/bin:$$PATH" python scripts/write_schemas.py

.PHONY: envs
envs: env ## write envs/*.yaml again from requirements.lock and the dependency groups of pyproject.toml
	@PATH="$$PWD/.venv/bin:$$PATH" python scripts/write_environments.py

NLTK_DATA_FOLDER ?= ../shared/data/nltk
.PHONY: sentence-model
sentence-model: env ## train the sentence splitter's model again; NLTK_DATA_FOLDER=folder with the zip packages
	@PATH="$$PWD/.venv/bin:$$PATH" python scripts/train_sentence_splitter.py \
	  --source brown=$(NLTK_DATA_FOLDER)/brown.zip --source inaugural=$(NLTK_DATA_FOLDER)/inaugural.zip \
	  --source state_union=$(NLTK_DATA_FOLDER)/state_union.zip

# Locked versions are kept if they satisfy requirements.in. The hashes of the locked versions are removed first, because uv
# would keep these hashes and not add the hashes of other platforms. A marker that is true on all platforms of
# pyproject.toml is left out.
.PHONY: lock
lock: env ## write requirements.lock and envs/*.yaml again from requirements.in (needs uv on PATH)
	@sed -n 's/^\([a-z][^ ]*==[^ ;]*\).*/\1/p' requirements.lock > .lock.partial && mv .lock.partial requirements.lock
	@uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --annotation-style line \
	  --custom-compile-command "make lock" --output-file requirements.lock requirements.in > /dev/null
	@sed -e '/arm64.*aarch64.*x86_64/s/ ; .*/ \\/' -e "s/python_full_version < '3.15' and //" requirements.lock > .lock.partial
	@mv .lock.partial requirements.lock
	@$(MAKE) --no-print-directory envs

.PHONY: clean-environment
clean-environment: ## remove .venv
	rm -rf .venv

.PHONY: clean-caches
clean-caches: ## remove bytecode and the caches of tools; keeps results and .venv
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find scripts tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: clean-leftovers
clean-leftovers: ## remove files that killed jobs left behind; keeps results and unfinished trainings
	@python=.venv/bin/python; [ -x "$$python" ] || python=python3; "$$python" scripts/clean_leftovers.py

.PHONY: clean-experiment
clean-experiment: env ## remove the folder results/EXPERIMENT; keeps models, checkpoints and all other results that experiments share
	@.venv/bin/python scripts/clean_experiment.py -- "$(EXPERIMENT)"
