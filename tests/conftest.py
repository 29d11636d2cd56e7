"""How the tests are spread over processes."""

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A folder's tests share models and servers: one process runs them, one after the other."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group(str(item.path.parent)))
