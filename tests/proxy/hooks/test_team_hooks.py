"""A team's hooks: the hooks of the configured features, in a fixed order, and built once."""

from proxy.hooks.request_hook import RequestHook
from proxy.hooks.team_hooks import TeamHooks


def test_without_features_no_team_has_hooks() -> None:
    assert TeamHooks()["search"] == ()


def test_hooks_stand_in_the_order_of_the_features_and_are_made_once() -> None:
    hooks, first, last = TeamHooks(), RequestHook(), RequestHook()
    hooks.attach("payload_log", lambda team: last)
    hooks.attach("tracing", lambda team: first)
    assert hooks["search"] == (first, last)
    assert hooks["search"] is hooks["search"]


def test_a_team_that_does_not_use_a_feature_has_no_hook_of_it() -> None:
    hooks, hook = TeamHooks(), RequestHook()
    hooks.attach("payload_log", lambda team: hook if team == "search" else None)
    assert (hooks["search"], hooks["ads"]) == ((hook,), ())


def test_what_is_attached_or_detached_holds_for_requests_from_then_on() -> None:
    hooks, old, new = TeamHooks(), RequestHook(), RequestHook()
    hooks.attach("tracing", lambda team: old)
    before = hooks["search"]
    hooks.attach("tracing", lambda team: new)
    assert (before, hooks["search"]) == ((old,), (new,))
    hooks.attach("tracing", None)
    assert hooks["search"] == ()
