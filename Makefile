# make demo  real MovieLens candidates, ranked end to end
# make test  linters, C++ tests, Python tests, end-to-end tests
# make bench end to end on 210 features: tf.Example against columns; bench-zoo: eight papers' models
# make fuzz  the wire format against protobuf and TensorFlow, REST, configuration: FUZZ_SECONDS (60) each
# make fork  TF Serving's own tree with our patches laid in, to build with Bazel (docs/fork.md)
.PHONY: setup setup-estimator demo test lint bench bench-zoo fuzz fork fork-check clean

setup:
	@scripts/setup.sh

setup-estimator:
	@scripts/setup_estimator.sh

demo: setup
	@.venv/bin/python -m colcast.loadtest.demo

test: setup setup-estimator
	@scripts/test.sh

lint: setup
	@scripts/lint.sh

bench: setup
	@build/server/bin/wire_benchmark
	@.venv/bin/python -m tests.client.bench_encoding
	@.venv/bin/python -m colcast.loadtest.bench

bench-zoo: setup
	@.venv/bin/python -m colcast.loadtest.bench --papers

fuzz: setup
	@server/engine/fuzz/run.sh
	@server/fuzz/run.sh

# FORK_SERVING_SOURCE, FORK_TENSORFLOW_SOURCE: local trees instead of the network.
fork fork-check: FORK = python3 -m fork $(FORK_SERVING_SOURCE:%=--serving '%') $(FORK_TENSORFLOW_SOURCE:%=--tensorflow '%')
fork:
	@$(FORK)

fork-check:
	@$(FORK) --check

clean:
	rm -rf build .venv .venv-estimator
