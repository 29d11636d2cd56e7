"""How the tests are spread over processes, and what property tests draw."""

import os

import pytest
from hypothesis import settings

# The same examples in every run, so that a change is what makes a test fail. Others are looked for
# with HYPOTHESIS_PROFILE=explore.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A folder's tests share models and servers: one process runs them, one after the other."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group(str(item.path.parent)))
