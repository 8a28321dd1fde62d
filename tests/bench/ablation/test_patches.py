"""A patch needs an existing object."""

import pytest

from tests.bench.ablation.patches import Missing, Patch, apply, holder_of


def test_a_path_leads_to_what_has_the_name() -> None:
    holder, name = holder_of("proxy.timers:Timers.set")
    assert (holder.__name__, name) == ("Timers", "set")


def test_what_is_not_there_is_not_replaced() -> None:
    for path in ("proxy.nowhere:name", "proxy.timers:nobody", "proxy.timers:Timers.nobody"):
        with pytest.raises(Missing, match=path):
            apply(Patch(path, None))
