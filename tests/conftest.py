"""Distributes tests over processes, and configures property tests."""

import os

import pytest
from hypothesis import settings

# The same examples in every run, so that tests fail only because of changes.
# HYPOTHESIS_PROFILE=explore draws others.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts a folder's tests, which share models and servers, into one process."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group(str(item.path.parent)))
