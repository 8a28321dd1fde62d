"""The guards of each team, and how requests and choices pass them."""

import pytest

from providers.completion import Choice
from providers.unified_request import ChatPrompt, NativeApi, NativeRequest, Operation, UnifiedRequest
from proxy.hooks.team_hooks import TeamHooks
from proxy.plugins.guarded_answers import GuardHook, attach_guards
from tests.proxy.plugins.kit import HIDDEN, SECRET, plugin
from tests.proxy.plugins.test_guarded_choice import chain, record

pytestmark = pytest.mark.smoke


REQUEST = UnifiedRequest(
    Operation.CHAT,
    "m",
    ChatPrompt(({"role": "user", "content": SECRET},)),
    {},
    native=NativeRequest(NativeApi.MESSAGES, {}),
)


@pytest.mark.parametrize("heavy", [False, True])
async def test_a_rewritten_request_names_who_rewrote_it(heavy: bool) -> None:
    told = record()
    made = await chain(plugin("Hider")).request_passed(REQUEST, told, heavy=heavy)
    assert made.prompt == ChatPrompt(({"role": "user", "content": HIDDEN},))
    assert made.native is None
    assert told.guarded is not None
    assert told.guarded.names == ["g0"]


async def test_what_is_not_changed_is_the_same_object() -> None:
    guards = chain(plugin("Hider", "word: absent"))
    assert await guards.request_passed(REQUEST, record(), heavy=False) is REQUEST
    choice = Choice(0, "a", "stop")
    assert await guards.choice_passed(choice, record()) is choice


async def test_a_long_choice_is_checked_off_the_loop() -> None:
    told = record()
    made = await chain(plugin("Hider")).choice_passed(Choice(0, f"{SECRET} " * 50_000, "stop"), told)
    assert SECRET not in made.text


async def test_a_chain_of_live_guards_streams_and_one_that_needs_all_does_not() -> None:
    assert chain(plugin("LiveHider"), plugin("RequestRefuser")).streams
    assert not chain(plugin("LiveHider"), plugin("Hider")).streams


async def test_requests_of_a_configuration_without_plugins_have_no_hook_of_them() -> None:
    hooks = TeamHooks()
    attach_guards(hooks, chain(plugin("Hider")).registry)
    (hook,) = hooks["anonymous", "openai"]
    assert isinstance(hook, GuardHook)
    assert hooks["a team without guards", "openai"] == ()
    attach_guards(hooks, None)
    assert hooks["anonymous", "openai"] == ()
