# make demo  real MovieLens candidates, ranked end to end
# make test  linters, C++ tests, Python tests, end-to-end tests
.PHONY: setup demo test lint bench clean

setup:
	@scripts/setup.sh

demo: setup
	@.venv/bin/python -m colcast.zoo.movielens.demo

test: setup
	@scripts/test.sh

lint: setup
	@scripts/lint.sh

clean:
	rm -rf build .venv
