# make demo        a trained network to firmware, proved and measured on an emulated mesh; needs Python 3.11 and make
# make test        every test but slow and exhaustive ones; needs Python 3.11, git and make
# make test-all    every test, an hour; CI runs a sixth of the slowest: make test-all PYTEST=--slow-part=0
# make onnx-nodes  ONNX's own node tests through the generated C, all of them
# make differential  random small networks of each op and type beside LiteRT, TFLite Micro, ONNX Runtime and PyTorch:
#                  SEEDS=N seeds from SEED on
# make mutants     a sample of changed builds: validation must find them; all: python benchmarks/mutants.py --write
# make two-chips   two full chips, every PE and every frame; CI runs it
# make whole-board all 7296 PEs of pe-mesh-7296
# make dead-parts  a network around each dead PE and each dead link of pe-mesh: make dead-parts MODEL=FILE
# make large-networks  MobileNetV1, MobileNetV2 and ResNet-50 on a chip of 152 PEs
# make kinds-of-pe  networks on RISC-V PEs and on PEs that are not alike: make kinds-of-pe MODEL="FILE ..."
# make ten-minutes  a wake word and silero-vad, exact over ten minutes: make ten-minutes WAKE_WORD=FILE SILERO=FILE
# make figures     the figures of README and docs/, measured and written: make figures MODELS=FOLDER_OF_MODELS
# make lone-ops    cycles of each op by itself on four cores: none more than in benchmarks/lone_ops.md
# make deadlock    the graph of waiting of the network of each board: no cycle; two minutes
# make formal    proofs of router, DMA, arbiter and the writes of the array, and their mutants; five minutes; needs
#                Yosys and z3
# make area        the area of each part of a PE; needs Yosys; circuits: python benchmarks/rtl/area.py --ecp5 pe_node
# make link-faults 10,000 faults of last packets, none silent; twenty minutes
# make rtl         the MAC array in SystemVerilog: 10,000 random chains beside the numpy model; then networks beside the
#                  manual's cycles: make rtl MODELS=FOLDER_OF_MODELS; needs Verilator
# make rtl-quick   the RTL's part of CI: lint, random chains and loads of a SEED, digits on a PE, and AD on 16 with
#                  MODELS=FOLDER_OF_MODELS
# make docs        the site of README, docs/ and the other pages, in out/site; a broken link fails
# make lint        ruff and pyright
# make wheel       dist/npukit-*.whl, dist/npukit_emulator-*.whl and dist/npukit_mla-*.whl
# make clean       leaves what git knows

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MODEL := examples/digits/digits_int8.tflite
INPUTS := examples/digits/digits.npz
BUILD := out/digits

# Mutants of the sample.
MUTANTS := 60

# The first of the random chains and loads of rtl-quick, and of the random networks of differential.
SEED := 0

# Seeds of differential.
SEEDS := 1

# Further options of pytest for test and test-all.
PYTEST :=

# One process more than cores: some tests wait for a line or a clock.
JOBS := $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)

# Tests start many processes: each would compile all of npukit again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: area deadlock differential formal link-faults rtl-quick demo test test-all onnx-nodes mutants two-chips whole-board dead-parts large-networks kinds-of-pe ten-minutes lone-ops rtl figures docs lint wheel clean

demo: $(VENV)/installed
	$(BIN)/npukit build $(MODEL) --board pe-mesh -o $(BUILD)
	$(BIN)/npukit validate $(BUILD) --inputs $(INPUTS)
	$(BIN)/npukit bench $(BUILD)
	@echo
	@echo "The report: $(BUILD)/report.html"

test: $(VENV)/installed-for-development
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "not exhaustive" --durations=20 --durations-min=10 $(PYTEST)

test-all: $(VENV)/installed-for-development
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal --durations=20 --durations-min=10 $(PYTEST)

onnx-nodes: $(VENV)/installed-for-development
	$(BIN)/python benchmarks/onnx_nodes.py

differential: $(VENV)/installed-for-development
	$(BIN)/python benchmarks/differential/compare.py --seed $(SEED) --seeds $(SEEDS)

mutants: $(VENV)/installed-for-development
	PYTHONPATH=kit:tests:. $(BIN)/python benchmarks/mutants.py --sample $(MUTANTS) --seed 4 --least 0.98

two-chips: $(VENV)/installed-for-development
	$(BIN)/python benchmarks/large/whole_board.py $(MODEL) --emulate --pes 304 --inputs $(INPUTS)

whole-board: $(VENV)/installed-for-development
	$(BIN)/python benchmarks/large/whole_board.py $(MODEL) --emulate --inputs $(INPUTS)

dead-parts: $(VENV)/installed-for-development
	$(BIN)/python benchmarks/mesh/dead_parts.py $(MODEL)

large-networks: $(VENV)/installed-for-development
	$(BIN)/python benchmarks/large/imagenet_models.py out/imagenet
	$(BIN)/python benchmarks/large/large_networks.py out/imagenet

kinds-of-pe: $(VENV)/installed-for-development
	$(BIN)/python benchmarks/mesh/kinds_of_pe.py $(MODEL)

ten-minutes: $(VENV)/installed-for-development
	$(BIN)/python benchmarks/streams.py $(WAKE_WORD) --bands --pes 1
	$(BIN)/python benchmarks/streams.py $(SILERO) --float --hop 512 --input input:1x576 --input state:2x1x128 \
		--input sr=16000 --state state=stateN --board mps2-an386

lone-ops: $(VENV)/installed-for-development
	$(BIN)/python benchmarks/lone_ops.py

deadlock: $(VENV)/installed-for-development
	PYTHONPATH=kit:tests:. $(BIN)/python benchmarks/rtl/deadlock.py

formal: $(VENV)/installed-for-development
	PYTHONPATH=kit:tests:. $(BIN)/python tests/rtl/prove.py --jobs $$(getconf _NPROCESSORS_ONLN)

area: $(VENV)/installed-for-development
	PYTHONPATH=kit:tests:. $(BIN)/python benchmarks/rtl/area.py

link-faults: $(VENV)/installed-for-development
	$(BIN)/python benchmarks/rtl/link_faults.py

rtl: $(VENV)/installed-for-development
	PYTHONPATH=kit:tests:. $(BIN)/python benchmarks/rtl/random_commands.py
	PYTHONPATH=kit:tests:. $(BIN)/python benchmarks/rtl/random_loads.py
	$(BIN)/python benchmarks/rtl/manual.py $(MODELS)

rtl-quick: $(VENV)/installed-for-development out/mesh/mesh
	$(BIN)/python -m pytest -q tests/rtl -k nothing_to_warn
	PYTHONPATH=kit:tests:. $(BIN)/python benchmarks/rtl/random_commands.py --count 600 --seed $(SEED)
	PYTHONPATH=kit:tests:. $(BIN)/python benchmarks/rtl/random_loads.py --loads 4 --seed $(SEED) --program out/mesh/mesh
	$(foreach each,$(MODEL):1 $(wildcard $(MODELS)/ad01_int8.tflite):16,$(call on_rtl,$(subst :, ,$(each))))

# A network whose commands the RTL and its model run in turn, in bytes and cycles: model, PEs.
define on_rtl
$(if $(word 2,$(1)),$(BIN)/npukit build $(word 1,$(1)) --board pe-mesh --pes $(word 2,$(1)) -o out/on-rtl -q
	$(BIN)/npukit validate out/on-rtl --on rtl
	$(BIN)/npukit bench out/on-rtl --on rtl
)
endef

out/mesh/mesh: $(wildcard rtl/*/*.sv rtl/testbench/*) $(VENV)/installed-for-development
	mkdir -p out/mesh
	PYTHONPATH=kit:tests:. $(BIN)/python -c "from pathlib import Path; from rtl.mesh import compile_mesh; \
		compile_mesh(Path('out/mesh').absolute(), 4, 4)"

figures: $(VENV)/installed-for-development
	$(BIN)/python benchmarks/golden_metrics.py $(MODELS) --write
	$(BIN)/python benchmarks/scaling.py $(MODELS)
	$(BIN)/python benchmarks/core/cortex_m4.py $(MODELS) --save benchmarks/core/cortex_m4
	$(BIN)/python benchmarks/core/cores.py $(MODELS) --save benchmarks/core/cores
	PYTHONPATH=kit:tests:. $(BIN)/python tests/docs/pages.py

docs: $(VENV)/installed-for-docs
	$(BIN)/sphinx-build -q -E -W --keep-going -b html -c docs . out/site

lint: $(VENV)/installed-for-development
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright --pythonpath $(BIN)/python

wheel: $(VENV)/installed
	$(BIN)/python -m pip wheel --no-deps --wheel-dir dist . ./kit/npukit_emulator ./kit/npukit_mla

clean:
	rm -rf $(VENV) out dist build .pytest_cache .hypothesis .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/python-ready:
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/installed: pyproject.toml kit/npukit_emulator/pyproject.toml kit/npukit_mla/pyproject.toml $(VENV)/python-ready
	$(BIN)/python -m pip install --quiet --editable kit/npukit_emulator --editable kit/npukit_mla --editable .
	touch $@

$(VENV)/installed-for-development: pyproject.toml $(VENV)/installed
	$(BIN)/python -m pip install --quiet --editable '.[test,lint,train]'
	touch $@

$(VENV)/installed-for-docs: pyproject.toml $(VENV)/installed
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	touch $@
