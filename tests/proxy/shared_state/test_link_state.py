"""When a lost service is tried again, and which changes are reported."""

import pytest

from proxy.shared_state.link_state import LINES_WINDOW, MAX_LINES, LinkCondition, LinkState


def lost_link() -> LinkState:
    """Return the state after one response and then no response."""
    standing = LinkState()
    standing.answered(LinkCondition.UP)
    for _ in range(5):
        standing.missed()
    return standing


@pytest.fixture
def standing() -> LinkState:
    return LinkState()


def test_of_one_that_has_not_been_asked_nothing_is_known_or_said(standing: LinkState) -> None:
    assert (standing.up, standing.unknown, standing.news(0.0)) == (False, True, None)


def test_one_that_answers_is_asked_every_second_and_nothing_is_said(standing: LinkState) -> None:
    assert standing.answered(LinkCondition.UP) == 1.0
    assert (standing.up, standing.unknown, standing.news(0.0)) == (True, False, None)


def test_it_is_lost_after_five_misses_in_a_row_and_asked_ever_more_rarely(standing: LinkState) -> None:
    standing.answered(LinkCondition.UP)
    for number, wait in enumerate([1.0, 1.0, 1.0, 1.0, 5.0, 10.0, 20.0, 30.0, 30.0, *[30.0] * 2000]):
        assert standing.missed() == wait
        assert (standing.up, standing.unknown) == (number < 4, True)


def test_an_answer_between_starts_the_count_anew(standing: LinkState) -> None:
    for _ in range(3):
        assert [standing.missed() for _ in range(4)] == [1.0] * 4
        standing.answered(LinkCondition.UP)
        assert standing.news(0.0) is None


def test_one_that_never_answered_is_told_once_when_it_is_lost(standing: LinkState) -> None:
    told = [(standing.missed(), standing.news(0.0))[1] for _ in range(9)]
    assert told == [None] * 4 + [LinkCondition.ALONE] + [None] * 4
    assert not standing.up


def test_a_loss_and_the_return_are_told_once_each() -> None:
    standing = lost_link()
    assert [standing.news(1.0), standing.news(2.0)] == [LinkCondition.ALONE, None]
    assert standing.answered(LinkCondition.UP) == 1.0
    assert [standing.news(3.0), standing.news(4.0)] == [LinkCondition.UP, None]
    assert standing.up


def test_foreign_content_is_told_and_that_it_is_gone_is_not(standing: LinkState) -> None:
    standing.answered(LinkCondition.FOREIGN)
    assert [standing.news(0.0), standing.news(0.0), standing.up] == [LinkCondition.FOREIGN, None, True]
    standing.answered(LinkCondition.UP)
    assert standing.news(1.0) is None
    standing.answered(LinkCondition.FOREIGN)
    assert standing.news(2.0) is LinkCondition.FOREIGN


def flap(standing: LinkState, now: float) -> LinkCondition | None:
    """Lose the service, or have it back."""
    if standing.up:
        for _ in range(5):
            standing.missed()
    else:
        standing.answered(LinkCondition.UP)
    return standing.news(now)


def test_one_that_comes_and_goes_is_told_of_four_times_in_ten_minutes(standing: LinkState) -> None:
    standing.answered(LinkCondition.UP)
    told = [flap(standing, float(second)) for second in range(0, int(LINES_WINDOW), 10)]
    assert [each for each in told if each] == [LinkCondition.ALONE, LinkCondition.UP] * (MAX_LINES // 2)


@pytest.mark.parametrize("later", [0, 1])
def test_what_was_left_unsaid_is_said_when_there_is_room_if_it_still_holds(later: int, standing: LinkState) -> None:
    standing.answered(LinkCondition.UP)
    for second in range(5 + later):
        flap(standing, float(second))
    assert standing.news(LINES_WINDOW - 0.1) is None
    assert standing.news(LINES_WINDOW) is (None if standing.up else LinkCondition.ALONE)
