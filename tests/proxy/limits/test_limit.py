"""The words of limits: what is a limit, and what is none."""

import pytest

from proxy.limits.limit import UNLIMITED, Limits, Period, Quota, Rate, Unit


@pytest.mark.parametrize(
    "limits",
    [
        Limits(rates=(Rate(Unit.REQUESTS, 60, Period.MINUTE, 60),)),
        Limits(quotas=(Quota(Unit.TOKENS, 5_000_000, Period.DAY),)),
        Limits(concurrent=1),
    ],
)
def test_limits_are_true_with_any_limit_in_them(limits: Limits) -> None:
    assert limits


def test_no_limit_is_false() -> None:
    assert not UNLIMITED
