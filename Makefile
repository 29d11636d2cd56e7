# make demo  real MovieLens candidates, ranked end to end
# make test  linters, C++ tests, Python tests, end-to-end tests
.PHONY: setup setup-estimator demo test lint bench clean

setup:
	@scripts/setup.sh

setup-estimator:
	@scripts/setup_estimator.sh

demo: setup
	@.venv/bin/python -m colcast.zoo.movielens.demo

test: setup setup-estimator
	@scripts/test.sh

lint: setup
	@scripts/lint.sh

clean:
	rm -rf build .venv .venv-estimator
