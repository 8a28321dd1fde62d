"""The report of a rate that a process counts alone, because the coordinator does not respond."""

from proxy.limits.leased_rate import LeasedRate
from proxy.limits.limit import Period, Rate, Unit
from proxy.shared_state.lease import LeaseGrant
from tests.proxy.limits.kit.still_keeper import StillKeeper

TWENTY = Rate(Unit.REQUESTS, 20, Period.MINUTE, 20)


def test_a_refusal_alone_counts_what_this_process_let_through_and_no_more() -> None:
    keeper = StillKeeper(expected=2, has_answered=True)
    each = LeasedRate("t", TWENTY, keeper)
    keeper.alone = True
    passed = sum([each.attempt(1, 0.0, 0.0) for _ in range(20)])
    refused = each.exceeded("team t", 1, 0.0, 0.0)
    assert (refused.used, refused.alone) == (passed, 0)
    assert 0 < passed < 20


def test_a_refusal_among_others_says_nothing_of_who_counts() -> None:
    each = LeasedRate("t", TWENTY, StillKeeper())
    each.add_waiting(1)
    assert each.next_request(0.0) is not None
    each.apply_grant(LeaseGrant(0, 0.0, 0.5, 2), 0.0)
    refused = each.exceeded("team t", 1, 0.0, 0.0)
    assert (refused.used, refused.alone) == (20, None)
