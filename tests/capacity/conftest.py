"""The small model of the load tests."""

from ..loadtest.conftest import exported

__all__ = ["exported"]
