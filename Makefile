# make demo  real MovieLens candidates, ranked end to end
# make test  linters, C++ tests, Python tests, end-to-end tests
# make bench measures formats, states, protocols and so on; ROWS="papers text" selects other rows
# make fuzz  the independence rule, the wire format against protobuf and TensorFlow, HTTP/2, REST, files: FUZZ_SECONDS (60) each
# make bazel the packages that the fork gets, built and tested by Bazel (docs/compatibility.md)
# make docs  the documentation as a site, in build/site
# make wheels  colcast and colcast-server as wheels, in build/wheels; compiles nothing after make demo
#              (only for .venv's TensorFlow; make release adds the other release)
# make arm64  the server for ARM64, cross-compiled, in build/arm64, and its wheel in build/wheels
# make arm64-test  its answers and tests in an emulator (docs/versions.md)
# make release  wheels, image, bill of materials, notes and checksums, in build/release
# make fork  TF Serving's tree with our patches added, to build with Bazel (docs/compatibility.md)
.PHONY: setup environment setup-estimator setup-jax demo test lint bench fuzz docs bazel wheels arm64 arm64-test release fork fork-check clean

setup:
	@scripts/setup.sh

environment:
	@scripts/setup.sh environment

setup-estimator:
	@scripts/setup.sh estimator

setup-jax:
	@scripts/setup.sh jax

demo: setup
	@.venv/bin/python -m colcast.bench.demo

test: environment setup-estimator
	@scripts/test.sh

lint: environment
	@scripts/lint.sh

# ROWS selects rows of bench/table.py: make bench ROWS="papers text"
bench:
	@scripts/setup.sh colcast_model_server colcast_engine wire_benchmark serving_patches_benchmark
	@build/server/bin/serving_patches_benchmark
	@build/server/bin/wire_benchmark
	@.venv/bin/colcast bench $(ROWS)

fuzz: setup
	@server/fuzz/run.sh

docs: environment
	@NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict

wheels: setup
	@scripts/wheels.sh

arm64: environment
	@scripts/arm64.sh
	@scripts/wheels.sh --arm64 --all

arm64-test: setup
	@scripts/arm64.sh test

release: setup
	@scripts/release/release.sh

bazel: environment
	@scripts/bazel.sh

# FORK_SERVING_SOURCE, FORK_TENSORFLOW_SOURCE: local trees instead of the network.
fork fork-check: FORK = python3 -m fork $(FORK_SERVING_SOURCE:%=--serving '%') $(FORK_TENSORFLOW_SOURCE:%=--tensorflow '%')
fork:
	@$(FORK)

fork-check:
	@$(FORK) --check

clean:
	rm -rf build .venv .venv-estimator .venv-jax
