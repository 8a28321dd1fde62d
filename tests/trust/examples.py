"""A plugin of pytest (`-p tests.trust.examples`): every property that sets no number of its own gets 5,000 examples.

Never a property.
"""

from typing import Final

import pytest
from hypothesis import HealthCheck, settings

EXAMPLES: Final = 5_000


def pytest_configure(config: pytest.Config) -> None:
    """Only where this is a plugin: whoever merely imports it keeps the usual number."""
    settings.register_profile("many", max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    settings.load_profile("many")
