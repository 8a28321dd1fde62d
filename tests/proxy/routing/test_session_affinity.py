"""Ranks of members for a conversation: by value, independent of the process, by weight, and within a bound on load."""

from proxy.routing.session_affinity import ALWAYS_ALLOWED, MemberGroup, rank, seed, within_load
from tests.support.looped import looped

ABCD = MemberGroup("g", ("v/m/a", "v/m/b", "v/m/c", "v/m/d"), (1, 1, 1, 1))


def without(group: MemberGroup, gone: int) -> MemberGroup:
    weights = tuple(0 if position == gone else weight for position, weight in enumerate(group.weights))
    return MemberGroup(group.label, group.names, weights)


def test_ranks_are_the_same_in_every_version_and_process() -> None:
    assert seed("v/m/a") == 0x22A2FE6112AB34F4
    assert [rank(number, ABCD) for number in (0, 1, 2**63, 2**64 - 1)] == [
        (3, 2, 0, 1),
        (2, 3, 1, 0),
        (0, 3, 2, 1),
        (0, 3, 1, 2),
    ]


def test_a_member_of_weight_0_is_not_ranked() -> None:
    assert sorted(rank(7, MemberGroup("g", ("a", "b", "c"), (1, 0, 2)))) == [0, 2]
    assert rank(7, MemberGroup("g", ("a",), (0,))) == ()


def test_a_lost_member_moves_its_own_conversations_alone_and_the_others_keep_their_order() -> None:
    for number in range(2_000):
        ranks = rank(seed(str(number)), ABCD)
        for gone in range(4):
            assert rank(seed(str(number)), without(ABCD, gone)) == tuple(each for each in ranks if each != gone)


def test_the_members_of_a_group_get_the_conversations_of_one_that_is_lost_alike() -> None:
    seconds = [0, 0, 0, 0]
    for number in range(8_000):
        ranks = rank(seed(str(number)), ABCD)
        seconds[ranks[1]] += ranks[0] == 0
    assert seconds[0] == 0
    assert all(550 < count < 790 for count in seconds[1:])  # a third of 2,000, within 5 standard deviations


@looped(
    ("busy", "load", "order", "skipped"),
    [
        ((0, 0, 0, 0), 1.5, (0, 1, 2, 3), False),
        ((ALWAYS_ALLOWED, 0, 0, 0), 1.5, (0, 1, 2, 3), False),
        ((5, 0, 0, 0), 1.5, (1, 0, 2, 3), True),
        ((5, 5, 5, 5), 1.5, (0, 1, 2, 3), False),
        ((15, 9, 8, 8), 1.5, (0, 1, 2, 3), False),
        ((16, 9, 8, 8), 1.5, (1, 0, 2, 3), True),
        ((16, 16, 5, 5), 1.5, (2, 0, 1, 3), True),
        ((16, 9, 8, 8), 2.0, (0, 1, 2, 3), False),
        ((9, 8, 8, 8), 1.0, (1, 0, 2, 3), True),
    ],
)
def test_the_first_is_skipped_while_it_has_more_than_its_share(
    busy: tuple[int, ...], load: float, order: tuple[int, ...], skipped: bool
) -> None:
    found = within_load((0, 1, 2, 3), ABCD, busy.__getitem__, load)
    assert (found.ranks, found.order, found.skipped) == ((0, 1, 2, 3), order, skipped)
    assert found.busy == busy[0]


def test_the_share_of_a_member_follows_its_weight() -> None:
    group = MemberGroup("g", ("a", "b"), (9, 1))
    assert not within_load((0, 1), group, (90, 10).__getitem__, 1.1).skipped
    assert within_load((1, 0), group, (85, 15).__getitem__, 1.1).order == (0, 1)


def test_what_is_out_of_service_has_no_share_and_is_not_in_the_way() -> None:
    group = MemberGroup("g", ABCD.names, ABCD.weights, frozenset({0, 3}))
    assert within_load((0, 1, 2, 3), group, (0, 30, 28, 0).__getitem__, 1.5).order == (0, 1, 2, 3)
    assert within_load((0, 1, 2, 3), group, (0, 40, 10, 0).__getitem__, 1.5).order == (2, 0, 1, 3)
    everything = MemberGroup("g", ABCD.names, ABCD.weights, frozenset(range(4)))
    assert within_load((0, 1, 2, 3), everything, (9, 9, 9, 9).__getitem__, 1.5).order == (0, 1, 2, 3)


def test_shares_follow_weights_within_three_standard_deviations() -> None:
    group = MemberGroup("g", ("v/m/big", "v/m/small"), (9, 1))
    first = sum(rank(seed(f"key {number}"), group)[0] == 0 for number in range(10_000))
    assert abs(first - 9_000) <= 3 * (10_000 * 0.9 * 0.1) ** 0.5
