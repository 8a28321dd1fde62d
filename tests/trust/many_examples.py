"""A pytest plugin (`-p tests.trust.many_examples`) that sets 5,000 examples for every property without a number of its
own."""

from typing import Final

import pytest
from hypothesis import HealthCheck, settings

EXAMPLES: Final = 5_000


def pytest_configure(config: pytest.Config) -> None:
    """Set the number of examples. This runs only if the module is loaded as a plugin, not if it is imported."""
    settings.register_profile("many", max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    settings.load_profile("many")
