# `make demo` and `make test` do all their own set-up. Everything else is for people who work on Nereid.
.DEFAULT_GOAL := build
SHELL := /bin/bash
JOBS ?= $(shell nproc)
PRESET ?= release
BUILD := build/$(PRESET)
CTEST := ctest --test-dir $(BUILD) --output-on-failure --no-tests=error -j $(JOBS)

.PHONY: setup build demo test clean
setup: ; @tools/setup
build: setup
	@[ -e $(BUILD)/build.ninja ] || cmake --preset $(PRESET)
	@cmake --build $(BUILD) -j $(JOBS)
test: build
	@$(CTEST) -LE 'slow|gpu'
clean: ; rm -rf build dist
