# `make demo` and `make test` do all their own set-up. Everything else is for people who work on Nereid.
.DEFAULT_GOAL := build
SHELL := /bin/bash
JOBS ?= $(shell nproc)
PRESET ?= release
BUILD := build/$(PRESET)
# Three tests more than there are cores: some of them wait. So OpenMP's threads sleep where they would spin
# for a core that another test has.
CTEST := OMP_WAIT_POLICY=passive ctest --test-dir $(BUILD) --output-on-failure --no-tests=error \
  -j $(shell expr $(JOBS) + 3)

# One part of the tests: make test PART=compiler (`ctest --test-dir build/release --print-labels` lists them).
PART ?=

.PHONY: setup setup-tests build build-tests demo test slow mutation dist sanitize format lint tidy clean
setup: ; @tools/setup
setup-tests: ; @tools/setup requirements-test.txt
build: setup
	@[ -e $(BUILD)/build.ninja ] || cmake --preset $(PRESET)
	@cmake --build $(BUILD) -j $(JOBS)
# What only tests run and another compiler builds: the libFuzzer targets.
build-tests: build ; @[ $(PRESET) = sanitize ] || tools/fuzz 0
# The main job on embedded examples: an honest candidate, a wrong one, a cheating one, and a module made fast.
demo: setup
	@[ -e $(BUILD)/build.ninja ] || cmake --preset $(PRESET)
	@cmake --build $(BUILD) -j $(JOBS) --target nereid nereid-replay nereid_jail nereid-jail nereid-worker-pool
	@tools/demo
test: setup-tests build build-tests
	@$(CTEST) -LE 'slow|gpu' $(if $(PART),-L '^$(PART)') || \
	  { code=$$?; tools/failed_tests $(BUILD); exit $$code; }
# Minutes to hours: long fuzzing, whole model zoos, exhaustive operator tables.
slow: setup-tests build
	@$(CTEST) -L slow
# How many faults made on purpose the verdict finds, by class, with a page of those that it does not:
# build/mutation. Hours on few cores.
mutation: setup-tests build
	@NEREID=$(BUILD)/bin/nereid tests/mutation/full build/mutation --jobs $(JOBS)
# A wheel that carries the built program to another machine, one with a GPU for instance.
dist: build ; @tools/dist $(BUILD)
# The default tests under AddressSanitizer and UndefinedBehaviorSanitizer.
sanitize: ; @$(MAKE) --no-print-directory test PRESET=sanitize
# clang-format and ruff, pinned in requirements-test.txt, and tools/wrap for prose. The corpus of candidates
# is left as it is written (ruff.toml).
CPP = git ls-files '*.h' '*.cpp'
format: setup-tests
	@$(CPP) | xargs .venv/bin/clang-format -i
	@.venv/bin/ruff check --fix -q . && .venv/bin/ruff format -q .
	@tools/wrap
# Formatting, words and sizes, then clang-tidy (.clang-tidy) over what has changed since it was clean.
lint: setup-tests build
	@tools/lint && tools/tidy $(BUILD) --jobs $(JOBS)
# clang-tidy over everything, or one part: make tidy PART=verify.
tidy: setup-tests build
	@tools/tidy $(BUILD) --all --part '$(PART)' --jobs $(JOBS)
clean: ; rm -rf build dist
