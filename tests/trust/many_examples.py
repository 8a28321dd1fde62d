"""A pytest plugin (`-p tests.trust.many_examples`) that gives 5,000 examples to every property without a number of its
own."""

from typing import Final

import pytest
from hypothesis import HealthCheck, settings

EXAMPLES: Final = 5_000


def pytest_configure(config: pytest.Config) -> None:
    """Set the number of examples, only where this is loaded as a plugin and not imported."""
    settings.register_profile("many", max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    settings.load_profile("many")
