"""Helpers that return the failure or refusal of a call."""

from collections.abc import Callable
from typing import ParamSpec

import pytest

from providers.failure import Failure, Refusal, UpstreamError

P = ParamSpec("P")


def failure_of(call: Callable[P, object], *args: P.args, **named: P.kwargs) -> Failure:
    """Return the failure that a call raises."""
    with pytest.raises(UpstreamError) as caught:
        call(*args, **named)
    return caught.value.failure


def refusal_of(call: Callable[P, object], *args: P.args, **named: P.kwargs) -> Refusal:
    """Return the refusal that a call raises."""
    with pytest.raises(Refusal) as caught:
        call(*args, **named)
    return caught.value
