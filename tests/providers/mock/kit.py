"""The mock vendor's refusals."""

from collections.abc import Callable
from typing import ParamSpec

import pytest

from providers.mock.errors import MockError

P = ParamSpec("P")


def refused(call: Callable[P, object], *args: P.args, **named: P.kwargs) -> tuple[int, str | None]:
    """Return the status of the refusal that a call raises, and the field that it names."""
    with pytest.raises(MockError) as caught:
        call(*args, **named)
    return caught.value.status, caught.value.param
