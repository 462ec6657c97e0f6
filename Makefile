# Every target is a line or two that also works by hand inside the virtual environment.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
NATIVE_SOURCES := $(shell find native -name '*.rs' -not -path '*/target/*') native/Cargo.toml
RUST := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' native/Cargo.toml)
NODE_PACKAGES := examples/node/node_modules/.package-lock.json
WORKERS ?= 2
AS_ROOT := $(if $(filter 0,$(shell id -u)),,sudo)
SHARE ?=
NAME ?= pipeline
RUNS ?= 1
SEED ?=
RERUN ?=
RECORD ?=

FRAMEWORKS := accelerate==1.15.0 jax==0.10.2 lightning==2.6.6 sentence-transformers==6.2.0 torchdata==0.11.0 transformers==5.24.0

# A pipe fails where pip fails. A step of the set-up counts its packages, in place on a terminal and every 50 in a
# log, and ends with its seconds.
SHELL := bash
.SHELLFLAGS := -o pipefail -c
COUNTED = { n=0; every=50; count='  %d packages\n'; before='  '; \
	if [ -t 1 ]; then every=1; count='\r  %d packages'; fi; \
	while read -r verb object _; do case "$$verb $$object" in \
	"Collecting "*) n=$$((n + 1)); [ $$((n % every)) -ne 0 ] || printf "$$count" $$n ;; \
	"Installing collected") [ $$n -eq 0 ] || { printf "$${count%\\n}, installing them" $$n; before=', '; } ;; \
	esac; done; printf '%s%d s\n' "$$before" $$SECONDS; }
# RERUN=1 runs what failed once more; RECORD=1 writes the CPU seconds as the new budget.
PYTEST = $(BIN)/$(if $(RERUN),python -m tests.rerun,pytest) -n $(WORKERS) --dist loadfile --no-loadscope-reorder \
	--durations 25 --durations-min 20 $(if $(RECORD),--record-cpu-budget) \
	$(if $(SEED),-p randomly --randomly-seed=$(SEED) --hypothesis-profile=drawn --hypothesis-seed=$(SEED))
PIP = $(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt
DEPENDENCIES = $(BIN)/python -c 'import tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; print(*project["dependencies"], *project["optional-dependencies"]["pipeline"], sep="\n")'

export PYO3_PYTHON := $(abspath $(BIN)/python)
export VIRTUAL_ENV := $(abspath $(VENV))
export CARGO_TERM_QUIET ?= true
# Empty: Python keeps compiled modules. Without them each process of the tests compiles them again.
export PYTHONDONTWRITEBYTECODE :=
export PATH := $(abspath $(BIN)):$(PATH)

.DEFAULT_GOAL := help
.PHONY: help prerequisites setup dev demo ui serve test test-rest test-crash test-damage test-pages test-tiny test-batches pictures lint format proto bench wheel interpreters system-packages clean

##@ Use
help: ## Show this help
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: setup ## Run the whole pipeline on this Python installation (SHARE=0.1 takes less of it, SHARE=1 all)
	@$(if $(SHARE),FACTORY_INSTALLATION_SHARE=$(SHARE)) $(BIN)/factory demo

ui: setup ## Open the Dagster UI on the same lake (PORT=3000)
	@$(BIN)/factory ui $(if $(PORT),--port $(PORT))

serve: setup ## Serve the lake's blends over gRPC (PORT=50051)
	@$(BIN)/factory serve $(if $(PORT),--port $(PORT))

##@ Develop
setup: $(VENV)/.maturin ## Create the environment: packages, native module, Spark's jars and classes
	@$(MAKE) -s -j2 $(VENV)/.installed $(VENV)/.jars

dev: setup $(VENV)/.dev ## Add what tests, benches and linters need

test: dev interpreters $(VENV)/.torch $(NODE_PACKAGES) ## Run the tests, but for those of test-rest (SEED=7: in another order, with other examples)
	@cd native && PROPTEST_RNG_SEED=$(or $(SEED),1) cargo test
	@$(PYTEST) -m 'not slow' --cpu-budget test

test-rest: dev system-packages $(VENV)/.torch $(VENV)/.frameworks $(VENV)/.all-jars ## Run the slow tests: engines, the browser, walkthroughs, the wheel, more kills
	@$(PYTEST) -m slow --cpu-budget rest

test-crash: dev ## Kill runs, relocations and workers at random instants (POINTS=20 SEED=7)
	@$(BIN)/pytest -n 0 -s tests/test_crash.py tests/lake/relocation tests/clusters/test_kills.py tests/synthesis/test_kills.py tests/synthesis/test_run_kills.py tests/engines/test_synthesis.py -k kill $(if $(POINTS),--kill-points $(POINTS)) $(if $(SEED),--kill-seed $(SEED))

test-damage: dev ## Damage files of a lake and read it in every way (DAMAGES=300 SEED=7)
	@$(BIN)/pytest -n 0 -s tests/test_pipeline.py -k damaged_file $(if $(DAMAGES),--damages $(DAMAGES)) $(if $(SEED),--damage-seed $(SEED))

test-tiny: dev ## Run tiny datasets through the whole chain (DATASETS=200 SEED=28)
	@$(BIN)/pytest -n 0 -s tests/test_tiny_datasets.py $(if $(DATASETS),--tiny-datasets $(DATASETS)) $(if $(SEED),--tiny-seed $(SEED))

test-pages: dev ## Draw Parquet files of all types and encodings and read them in every way (FILES=2000)
	@$(BIN)/pytest -n 0 -s tests/blender/parquet/test_page_layouts.py $(if $(FILES),--page-files $(FILES))

test-batches: dev ## Run interleavings of durable batches, kill their processes (SEEDS=30000 KILLS=50 SEED=31)
	@$(BIN)/pytest -n 0 -s --timeout 0 tests/blender/global_batches/log/test_interleavings.py tests/blender/global_batches/log/test_lifecycle.py tests/blender/global_batches/test_kills.py tests/engines/test_global_batches.py -k "interleaving or killed" $(if $(SEEDS),--batch-seeds $(SEEDS)) $(if $(KILLS),--batch-kills $(KILLS)) $(if $(SEED),--batch-seed $(SEED))

pictures: dev system-packages ## Take the pictures of docs/img from the running UI
	@$(BIN)/pytest -n 0 tests/ui --pictures docs/img

lint: dev ## Check style, types, layers and the native crate
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@cd native && cargo fmt --check && cargo clippy --release --all-targets -- -D warnings

format: dev ## Format Python and Rust
	@$(BIN)/ruff check --fix . && $(BIN)/ruff format . && cd native && cargo fmt

proto: dev ## Generate the messages from the .proto files
	@$(BIN)/python -m grpc_tools.protoc -I . --python_out=. --pyi_out=. blender/proto/blender/v1/blender.proto

bench: dev ## Measure (NAME=pipeline), RUNS times (1) with the spread
	@$(BIN)/python -m bench $(NAME) --runs $(RUNS)

wheel: $(VENV)/.maturin ## Build the package for pip, into dist/wheel
	@rm -rf dist/wheel
	@$(BIN)/maturin build --release --out dist/wheel

interpreters: ## Install the interpreters that `make test` starts, where they are missing (Debian: as root, or with sudo)
system-packages: ## Install them, and the server and the browser of `make test-rest`
system-packages: SERVERS = yes
system-packages: | interpreters
interpreters system-packages:
	@missing=; \
	command -v ruby >/dev/null || missing="$$missing ruby"; \
	command -v php >/dev/null || missing="$$missing php-cli php-ast"; \
	command -v npm >/dev/null || missing="$$missing nodejs npm"; \
	[ -z "$(SERVERS)" ] || { \
		command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing="$$missing postgresql"; \
		command -v chromium >/dev/null || missing="$$missing chromium fonts-dejavu-core"; \
	}; \
	[ -z "$$missing" ] || { \
		command -v apt-get >/dev/null || { echo "The tests need$$missing, and there is no apt-get. Install them by your system's tools." >&2; exit 1; }; \
		echo "Installing$$missing ..."; \
		$(AS_ROOT) apt-get update -qq && $(AS_ROOT) env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $$missing >/dev/null; \
	}

clean: ## Remove the default lake and the native build (not the environment, not the cache)
	rm -rf .factory native/target

prerequisites:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed. Install one, or name it: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "Python's venv module is missing. Install it (Debian: apt-get install python3-venv)." >&2; exit 1; }
	@printf 'cargo %s\n' "$(RUST)" "$$(cargo --version 2>/dev/null | cut -d' ' -f2)" | sort -VC || { echo "No Rust $(RUST) or newer was found, and the native kernels need it. Install it: https://rustup.rs" >&2; exit 1; }
	@command -v cc >/dev/null || { echo "No C linker was found, and Rust needs one. Install it (Debian: apt-get install gcc)." >&2; exit 1; }
	@command -v "$${JAVA_HOME:+$$JAVA_HOME/bin/}java" >/dev/null || { echo "No Java was found, and Spark needs a JVM of version 17 or newer. Install one (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME." >&2; exit 1; }

# PySpark comes as source alone, which setuptools and wheel build; a fresh environment may have neither.
$(VENV)/.maturin: constraints.txt | prerequisites
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) --quiet maturin setuptools wheel
	@touch $@

# Cargo compiles while pip fetches packages. It takes no part in make's count of jobs, because make 4.3 closes the pipe
# that MAKEFLAGS names. What maturin prints is shown if it fails.
$(VENV)/.native: $(NATIVE_SOURCES) | $(VENV)/.maturin
	@echo "Compiling the native module ..."
	@log=$$(MAKEFLAGS= $(BIN)/maturin develop --release --quiet --skip-install 2>&1) || { echo "$$log" >&2; exit 1; }; \
	echo "  the native module, $$SECONDS s"
	@touch $@

$(VENV)/.packages: pyproject.toml constraints.txt | $(VENV)/.maturin
	@echo "Installing packages into $(VENV) ..."
	@$(PIP) --no-build-isolation -r <($(DEPENDENCIES)) | $(COUNTED)
	@touch $@

$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/.packages $(VENV)/.native
	@MAKEFLAGS= $(PIP) --quiet --no-build-isolation --no-deps -e .
	@touch $@

$(VENV)/.jars: factory/spark/jars.py factory/spark/archive.py | $(VENV)/.packages $(VENV)/.native
	@$(BIN)/python -m factory.spark
	@touch $@

$(VENV)/.all-jars: factory/spark/jars.py factory/spark/archive.py | setup
	@$(BIN)/python -m factory.spark --all
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | setup
	@echo "Installing what tests, benches and linters need into $(VENV) (a minute, once) ..."
	@$(PIP) --no-build-isolation -e '.[dev]' | $(COUNTED)
	@touch $@

$(VENV)/.torch: constraints.txt | setup $(VENV)/.dev
	@echo "Installing torch into $(VENV) (five gigabytes, a minute, once) ..."
	@$(PIP) torch | $(COUNTED)
	@touch $@

# In an environment of their own, which sees the packages of ours: what they pin is not ours to hold.
$(VENV)/.frameworks: constraints.txt | $(VENV)/.torch
	@echo "Installing the frameworks of docs/frameworks.md into $(VENV)-frameworks ..."
	@$(BIN)/python -m venv --clear $(VENV)-frameworks
	@cd $(VENV)-frameworks/lib/python*/site-packages && realpath $(abspath $(VENV))/lib/python*/site-packages > ours.pth
	@$(VENV)-frameworks/bin/python -m pip install --disable-pip-version-check -c constraints.txt $(FRAMEWORKS) | $(COUNTED)
	@touch $@

# They run no code when they are installed.
$(NODE_PACKAGES): examples/node/package-lock.json | interpreters
	@echo "Installing the packages of examples/node ..."
	@npm ci --prefix examples/node --ignore-scripts --no-audit --no-fund --loglevel error
	@touch $@
