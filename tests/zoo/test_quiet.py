"""The zoo keeps TensorFlow's lines about a machine without a GPU off the console."""

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize(("given", "expected"), [(None, "3"), ("0", "0")])
def test_errors_of_tensorflows_own_are_not_logged_unless_asked_for(
    given: str | None, expected: str
) -> None:
    """A build for GPUs logs the failed call to cuInit as an error, level 2."""
    environment = {name: os.environ[name] for name in os.environ if "TF_CPP" not in name}
    if given:
        environment["TF_CPP_MIN_LOG_LEVEL"] = given
    code = "import colcast.zoo, os; print(os.environ['TF_CPP_MIN_LOG_LEVEL'])"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=60
    )
    assert ran.stdout.strip() == expected
