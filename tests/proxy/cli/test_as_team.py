"""A command resolves names for the team of its option, or for no team."""

from collections.abc import Callable

import pytest

from proxy.cli.chosen_table import find_team
from proxy.cli.terminal import USAGE, CommandError
from proxy.process.load_table import Source
from proxy.routing.snapshot import ANYONE
from tests.proxy.cli.conftest import TABLE


def test_a_team_is_found_by_its_name_and_without_one_anything_may_be_asked_for(source: Callable[[str], Source]) -> None:
    assert find_team(source(TABLE).load().snapshot, None) is ANYONE
    assert find_team(source(TABLE).load().snapshot, "search").name == "search"


def test_an_unknown_team_is_wrong_usage_with_the_nearest_name(source: Callable[[str], Source]) -> None:
    with pytest.raises(CommandError, match=r"no team named 'serch'; did you mean search\?") as caught:
        find_team(source(TABLE).load().snapshot, "serch")
    assert caught.value.status == USAGE


def test_a_table_without_teams_says_so() -> None:
    with pytest.raises(CommandError, match="the configuration has no teams"):
        find_team(Source(None, {}).load().snapshot, "search")
