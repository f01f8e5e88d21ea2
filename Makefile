# A thin layer over `python -m neuroncore_rtl`: it makes the virtual environment and hands the variables on.
# `make help` lists what there is.

ifneq ($(CURDIR),$(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST))))))
$(error paths are relative to the Makefile's folder: run make -C $(dir $(lastword $(MAKEFILE_LIST))) instead)
endif

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/complete
ALL := $(VENV)/all
TB = $(BIN)/python -m neuroncore_rtl
# Types are checked, in 25 s, if anything is newer than the last check without an error.
TYPED = spec golden kernels frontends run pyproject.toml $(ALL)
TYPES = { [ -z "$$(find $(TYPED) -name __pycache__ -prune -o -newer sim_build/typed -print 2>&1)" ] || { \
	: >sim_build/typing; $(BIN)/basedpyright --level error >sim_build/types.txt && mv sim_build/typing sim_build/typed || \
	{ cat sim_build/types.txt; exit 1; }; }; }

# Processes that `make test` runs at once; a full-size build needs up to 4 GiB, so more than two is a choice.
JOBS ?= 2

# Every NAME=VALUE of make's command line that is meant for a TEST, each quoted for the shell. The environment does not
# count: a shell that happens to export M or SEED changes nothing, and a misspelt name is refused instead of ignored.
OURS := TEST PYTHON JOBS ARGS
NAMES = $(filter-out $(OURS),$(sort $(foreach name,$(.VARIABLES),$(if $(filter command,$(origin $(name))),$(name)))))
QUOTED_TEST = '$(subst ','\'',$(TEST))'
VARIABLES = $(foreach name,$(NAMES),'$(name)=$(subst ','\'',$($(name)))')

.DEFAULT_GOAL := help
.PHONY: help sim picture waves profile verilog image synth bitstream host formal mutate oracle sweep soak top test lint checks format bench figures docs doctor lock clean
# Else each process would compile all modules that it imports, as settings of container images have it.
unexport PYTHONDONTWRITEBYTECODE
# One recipe at a time, whatever -j says: what is parallel inside knows its own limits.
.NOTPARALLEL:

help: $(READY) ## list targets, TESTs and presets; make help TEST=matmul lists variables, with ALL=1 every parameter
	@$(TB) help $(if $(TEST),$(QUOTED_TEST) $(VARIABLES))

sim: $(READY) ## run a TEST in a simulator and compare every result bit for bit: make sim TEST=matmul [NAME=VALUE ...]
	@$(TB) sim $(QUOTED_TEST) $(VARIABLES)

picture: $(READY) ## draw a product in the array, moving and still: make picture TEST=matmul [M= K= N= A=file B=file SEED=]
	@$(TB) picture $(if $(TEST),TEST=$(QUOTED_TEST)) $(VARIABLES)

waves: $(READY) ## open a waveform of a TEST in GTKWave, the latest or a new one: make waves TEST=matmul [NAME=VALUE ...]
	@$(TB) waves $(QUOTED_TEST) $(VARIABLES)

profile: $(READY) ## run a TEST on the core and write where its cycles went: make profile TEST=matmul [TARGET=model ...]
	@$(TB) profile $(QUOTED_TEST) $(VARIABLES)

verilog: $(READY) ## export Verilog for other tools: make verilog PRESET=full
	@$(TB) verilog $(VARIABLES)

image: $(READY) ## write memory before and after a TEST on the core, for boards: make image TEST=matmul [NAME=VALUE ...]
	@$(TB) image $(QUOTED_TEST) $(VARIABLES)

synth: $(READY) ## synthesise a unit for an FPGA: area, clock, critical path: make synth UNIT=pe [FAMILY=xcup ...]
	@$(TB) synth $(VARIABLES)

bitstream: $(READY) ## build the core with a host link as a bitstream for a board: make bitstream BOARD=ulx3s [CORE=0 ...]
	@$(TB) bitstream $(VARIABLES)

host: $(READY) ## run programs on a board and check them, without PORT on a simulated board: make host TEST=digits [PORT=/dev/ttyUSB0]
	@$(TB) host $(if $(TEST),TEST=$(QUOTED_TEST)) $(VARIABLES)

formal: $(READY) ## prove properties with a solver: make formal UNIT=axi; UNIT=riscv RISCV_FORMAL=path
	@$(TB) formal $(VARIABLES)

mutate: $(READY) ## change a unit's netlist in hundreds of places and list what its tests miss: make mutate UNIT=adder
	@$(TB) mutate $(VARIABLES)

oracle: $(READY) ## run external test suites on hardware and golden: make oracle SUITE=riscv-tests FROM=folder
	@$(TB) oracle $(VARIABLES)

sweep: $(READY) ## run a TEST over lists of variables, on many workers: make sweep SPEC=examples/sweep.toml
	@$(TB) sweep $(VARIABLES)

soak: $(READY) ## run random programs on random machines, compare with golden, shrink failures: make soak HOURS=8
	@$(TB) soak $(VARIABLES)

top: $(READY) ## show what runs: progress, cycles a second, utilisation of each engine, memory; ONCE=1 prints it once
	@$(TB) top $(VARIABLES)

# The check of types takes half a minute on one processor, so it runs beside the tests.
test: checks ## lint and all tests but the slow ones; ARGS="-k matmul" selects, ARGS="-m slow" runs the slow ones
	@$(TYPES) & types=$$!; \
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m 'not slow' $(ARGS); tests=$$?; \
	wait $$types && exit $$tests

lint: checks ## check style, layout, import layers and cycles, types, line budgets, and the language of texts
	@$(TYPES)

checks: $(ALL) ## lint without the check of types, in 4 s
	@mkdir -p sim_build
	@$(BIN)/ruff check --quiet .
	@$(BIN)/lint-imports --no-logo >sim_build/imports.txt || { cat sim_build/imports.txt; exit 1; }
	@$(BIN)/python -m tests.house.budget
	@$(BIN)/python -m tests.house.prose >sim_build/prose.txt
	@$(BIN)/ruff format --check --quiet . || { echo "layout differs from ruff's: run make format" >&2; exit 1; }

format: $(ALL) ## format code and sort imports
	@$(BIN)/ruff check --quiet --fix . ; $(BIN)/ruff format .

bench: $(READY) ## measure build times, speed, utilisation and area
	@$(TB) bench $(VARIABLES)

figures: $(READY) ## run the commands shown in the documents, and update their output there: make figures [ONLY=mac]
	@$(TB) figures $(VARIABLES)

docs: $(READY) ## build the documentation site into sim_build/site; SERVE=1 shows it on http://localhost:8000
	@$(TB) docs $(VARIABLES)

doctor: $(READY) ## list installed and missing tools and packages with the commands that install them
	@$(TB) doctor

lock: $(READY) ## resolve the dependencies of pyproject.toml again, into requirements.lock
	@$(BIN)/uv pip compile --quiet --upgrade --no-annotate --custom-compile-command 'make lock' --all-extras \
	    --output-file requirements.lock pyproject.toml

clean: ## remove everything generated; the virtual environment stays (rm -r .venv removes that)
	@rm -rf sim_build .pytest_cache .ruff_cache .hypothesis

# PYTHON=/path/to/python names the interpreter; otherwise the first of these that is new enough makes the environment.
PYTHONS := $(or $(PYTHON),python3 python3.13 python3.12 python3.11)
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))

$(READY): requirements.lock neuroncore_rtl/tb/cli/environment.py
	@for python in $(PYTHONS); do \
	    if $$python -c '$(NEW_ENOUGH)' >/dev/null 2>&1; then exec $$python -m neuroncore_rtl.tb.cli.environment $(VENV) requirements.lock; fi; \
	done; \
	echo "Error: Python 3.11 or newer is missing (looked for: $(PYTHONS)); required packages:" >&2; \
	grep '^apt install' README.md >&2; \
	exit 1

$(ALL): $(READY)
	@$(BIN)/python -m neuroncore_rtl.tb.cli.environment $(VENV) requirements.lock all
