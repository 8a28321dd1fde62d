"""One choice of a stream that guards check, as values."""

import logging
from collections.abc import Sequence

import pytest

from config.load_config import load_text
from providers.completion import Chunk, ContentLogprobs, Extras, NativeEvent, ToolCallDelta
from providers.failure import UpstreamError
from proxy.errors import GatewayError
from proxy.off_loop.request_threads import RequestThreads
from proxy.plugins.answer_texts import choice_of
from proxy.plugins.guarded_choice import MAX_WITHHELD, GuardedChoice, HeldBack, HeldChoice, LiveChoice, plain
from proxy.plugins.load_plugins import load_plugins
from proxy.plugins.team_guards import GuardChain, TeamGuards
from proxy.request_outcomes import GuardMarks
from proxy.request_record import RequestRecord
from tests.proxy.kit.whole_gateway import MOCK
from tests.proxy.plugins.kit import HIDDEN, SECRET, plugin
from tests.support.looped import looped

pytestmark = pytest.mark.smoke


def chain(*plugins: str) -> GuardChain:
    entries = ", ".join(f"g{number}: {each}" for number, each in enumerate(plugins))
    loaded = load_text(f"{MOCK}plugins: {{{entries}}}\n", "t", {})
    registry = TeamGuards(loaded, load_plugins(loaded)[0], logging.getLogger("dragoman"), RequestThreads())
    found = registry.of("anonymous")
    assert found is not None
    return found


def record() -> RequestRecord:
    made = RequestRecord("r", 0.0, "openai", "/")
    made.guarded = GuardMarks()
    return made


def live(*plugins: str, room: int = 1_000_000) -> LiveChoice:
    return LiveChoice(chain(*plugins), record(), 0, HeldBack(room))


async def out(choice: GuardedChoice, *chunks: Chunk) -> list[Sequence[Chunk]]:
    return [[*(await choice.add(chunk))] for chunk in chunks]


END = Chunk(finish_reason="stop", native_finish_reason="eos", matched_stop="x", service_tier="t")


async def test_a_word_over_several_pieces_is_hidden_and_the_rest_comes_as_it_is() -> None:
    got = await out(live(plugin("LiveHider")), Chunk(text="a sword"), Chunk(text="fi"), Chunk(text="sh b"), END)
    assert got == [[Chunk(text="a ")], [], [Chunk(text=f"{HIDDEN} b")], [END]]


async def test_what_is_held_back_comes_with_the_end() -> None:
    got = await out(live(plugin("LiveHider")), Chunk(text="a sword"), END)
    assert got == [[Chunk(text="a ")], [Chunk(text="sword"), END]]


async def test_guards_stand_in_a_row() -> None:
    choice = live(plugin("LiveHider", "word: a"), plugin("LiveHider", f'word: "{HIDDEN}"'))
    assert await out(choice, Chunk(text="xay"), END) == [[Chunk(text=f"x{HIDDEN}y")], [END]]


async def test_thinking_is_held_back_until_it_ends_and_kept_as_it_came_where_nothing_changed() -> None:
    detail = Extras(reasoning_details=({"type": "t", "index": 0, "signature": "s"},))
    thought = [Chunk(reasoning="swo"), Chunk(reasoning="rdy"), Chunk(extras=detail, signature="s")]
    got = await out(live(plugin("LiveHider")), *thought, Chunk(text="b"), END)
    assert got == [[], [], [], [*thought, Chunk(text="b")], [END]]


async def test_rewritten_thinking_loses_its_signature() -> None:
    detail = Extras(reasoning_details=({"type": "t", "index": 0, "signature": "s"},))
    choice = live(plugin("LiveHider"))
    got = await out(choice, Chunk(reasoning="sword"), Chunk(reasoning="fish", extras=detail), Chunk(text="b"), END)
    assert got == [[], [], [Chunk(reasoning=HIDDEN), Chunk(text="b")], [END]]


def said(text: str) -> Chunk:
    return Chunk(text=text)


def thought(text: str) -> Chunk:
    return Chunk(reasoning=text)


def called(arguments: str, id: str | None = None, name: str | None = None) -> Chunk:
    return Chunk(tool_calls=(ToolCallDelta(0, id, name, arguments),))


def refused(text: str) -> Chunk:
    return Chunk(refusal=text)


def kinds(chunk: Chunk) -> set[str]:
    found = {name for name in ("text", "reasoning", "refusal", "tool_calls") if getattr(chunk, name)}
    return found | {"text", "refusal"} if found & {"text", "refusal"} else found


BETWEEN = said("-"), thought("+"), called("", id="1", name="f"), refused(".")


@looped("name", ["LiveHider", "Hider", "LiveRefuser", "Refuser"])
@looped(
    ("first", "second"),
    [
        (said("sword"), said("fish")),
        (thought("sword"), thought("fish")),
        (called('{"a":"sword', id="1", name="f"), called('fish"}')),
        (refused("sword"), refused("fish")),
        (said("sword"), Chunk(text="fish", refusal="fish")),
        (said("sword"), refused("fish")),
        (Chunk(reasoning="a", tool_calls=(ToolCallDelta(0, "1", "f", '"sword'),)), called('fish"')),
        (Chunk(reasoning="a", refusal="sword"), refused("fish")),
        (Chunk(extras=Extras(message={"x": "sword"})), Chunk(extras=Extras(message={"x": "fish"}))),
        (Chunk(extras=Extras(answer={"x": "sword"})), Chunk(extras=Extras(answer={"x": "fish"}))),
        (Chunk(extras=Extras(message={"x": SECRET})), Chunk(extras=Extras(message={"x": "fine"}))),
    ],
)
async def test_what_clients_join_over_all_runs_is_judged_together(name: str, first: Chunk, second: Chunk) -> None:
    runs = [first, *(each for each in BETWEEN if not kinds(each) & kinds(first)), second]
    kind = LiveChoice if name.startswith("Live") else HeldChoice
    choice = kind(chain(plugin(name)), record(), 0, HeldBack(1_000_000))
    shown: list[Chunk] = []
    try:
        for chunk in [*runs, END]:
            shown += await choice.add(chunk)
        assert shown[-1].finish_reason == "stop"
        assert "Refuser" not in name
    except GatewayError:
        assert "Refuser" in name
    joined = choice_of(shown, 0) if shown else None
    assert SECRET not in "".join([each.text or each.refusal or "" for each in shown])
    assert SECRET not in repr(joined)
    assert '"sword' not in repr(joined) or "Refuser" in name


async def test_reasoning_that_goes_on_between_texts_keeps_its_place_and_what_was_left_of_it() -> None:
    choice = live(plugin("LiveHider"))
    chunks = [thought("a "), said("1"), thought(f"{SECRET} "), said("2"), thought("b"), said("3"), END]
    hidden = [thought("a "), said("1"), thought(f"{HIDDEN} "), said("2"), thought("b"), said("3"), END]
    assert [each for shown in await out(choice, *chunks) for each in shown] == hidden


async def test_reasoning_that_alternates_with_text_is_judged_as_it_grows() -> None:
    guards, runs = chain(plugin("LiveHider")), 400
    choice = LiveChoice(guards, record(), 0, HeldBack(10_000_000))
    chunks = [made(f"{number} ") for number in range(runs) for made in (thought, said)]
    shown = [each for held in await out(choice, *chunks, END) for each in held]
    assert choice_of(shown, 0) == choice_of([*chunks, END], 0)
    assert guards.answer[0].calls < runs + 2 + 60  # each text, and some of the runs of reasoning


@pytest.mark.parametrize("name", ["LiveHider", "Hider"])
@pytest.mark.parametrize(
    ("end", "shown"),
    [
        (Chunk(finish_reason="length", native_finish_reason="MAX_TOKENS", matched_stop=7), None),
        (Chunk(finish_reason=SECRET), Chunk(finish_reason=HIDDEN)),
        (Chunk(finish_reason="stop", matched_stop=SECRET), Chunk(finish_reason="stop", matched_stop=HIDDEN)),
        (Chunk(finish_reason="stop", matched_stop="odd"), None),
    ],
)
async def test_the_words_of_an_end_are_judged(name: str, end: Chunk, shown: Chunk | None) -> None:
    kind = LiveChoice if name.startswith("Live") else HeldChoice
    assert await out(kind(chain(plugin(name)), record(), 0, HeldBack(1000)), end) == [[shown or end]]


async def test_nothing_follows_the_end_of_a_choice() -> None:
    assert await out(live(plugin("LiveHider")), said("a"), END, said(SECRET)) == [[said("a")], [END], []]


async def test_calls_are_checked_as_a_whole_and_keep_their_names() -> None:
    first = Chunk(tool_calls=(ToolCallDelta(0, "1", "f", '{"a":"sword'),))
    second = Chunk(tool_calls=(ToolCallDelta(0, arguments='fish"}'),))
    got = await out(live(plugin("LiveHider")), first, second, END)
    call = ToolCallDelta(0, "1", "f", f'{{"a":"{HIDDEN}"}}')
    assert got == [[], [], [Chunk(tool_calls=(call,)), END]]
    assert (await out(live(plugin("LiveHider", "word: absent")), first, second, END))[-1] == [first, second, END]


@pytest.mark.parametrize(("name", "kind"), [("LiveHider", LiveChoice), ("Hider", HeldChoice)])
async def test_escapes_over_pieces_hide_no_argument(name: str, kind: type[LiveChoice] | type[HeldChoice]) -> None:
    first = Chunk(tool_calls=(ToolCallDelta(0, "1", "f", '{"a":"M\\u00'),))
    second = Chunk(tool_calls=(ToolCallDelta(0, arguments='fcller"}'),))
    guards = chain(plugin(name, "word: Müller"))
    got = await out(kind(guards, record(), 0, HeldBack(1000)), first, second, END)
    assert got[-1][0].tool_calls == (ToolCallDelta(0, "1", "f", f'{{"a":"{HIDDEN}"}}'),)


async def test_annotations_of_a_rewritten_text_are_left_out() -> None:
    noted = Chunk(extras=Extras(annotations=({"start": 1},)))
    got = await out(live(plugin("LiveHider")), Chunk(text=SECRET), noted, END)
    assert got[:2] == [[Chunk(text=HIDDEN)], []]
    assert all(chunk.extras is None for chunk in got[2])
    assert (await out(live(plugin("LiveHider")), Chunk(text="b"), noted, END))[-1] == [noted, END]


async def test_a_chunk_with_everything_is_taken_apart() -> None:
    calls = (ToolCallDelta(0, "1", "f", "{}"),)
    everything = Chunk(text=SECRET, reasoning=SECRET, tool_calls=calls, finish_reason="tool_calls")
    (got,) = await out(live(plugin("LiveHider")), everything)
    assert "".join(each.text for each in got) == HIDDEN
    assert [each.reasoning for each in got if each.reasoning] == [HIDDEN]
    assert [each.tool_calls for each in got if each.tool_calls] == [calls]
    assert [each.finish_reason for each in got][-1] == "tool_calls"


async def test_a_refusal_of_the_model_is_checked() -> None:
    (got,) = await out(live(plugin("LiveHider")), Chunk(text=SECRET, refusal=SECRET, finish_reason="stop"))
    assert SECRET not in repr(got)
    assert HIDDEN in repr(got)


async def test_a_held_choice_comes_at_its_end_as_it_came_or_rewritten() -> None:
    chunks = [Chunk(text="sword"), Chunk(text="fish"), END]
    held = HeldChoice(chain(plugin("Hider", "word: absent")), record(), 0, HeldBack(1000))
    assert await out(held, *chunks) == [[], [], chunks]
    held = HeldChoice(chain(plugin("Hider")), record(), 0, HeldBack(1000))
    (got,) = (await out(held, *chunks))[-1]
    assert (got.text, got.finish_reason, got.matched_stop, got.service_tier) == (HIDDEN, "stop", "x", "t")


async def test_no_more_is_held_back_than_there_is_room_for() -> None:
    held = HeldChoice(chain(plugin("Hider")), record(), 0, HeldBack(1000))
    with pytest.raises(UpstreamError):
        await out(held, *[Chunk(text="x" * 100)] * 20)
    with pytest.raises(UpstreamError):
        await out(live(plugin("LiveHider"), room=1000), *[Chunk(reasoning="x" * 100)] * 20)


async def test_a_guard_that_holds_back_everything_fails() -> None:
    hoarder = plugin("LiveHider", f"word: {'a' * 100}")
    choice = live(hoarder.replace("LiveHider", "Hoarder"))
    with pytest.raises(GatewayError) as caught:
        await out(choice, Chunk(text="x" * MAX_WITHHELD), Chunk(text="xx"))
    assert caught.value.facts.code == "plugin_failed"


def test_nothing_is_shown_as_the_vendor_wrote_it() -> None:
    chunk = Chunk(text="a", native=NativeEvent("e", b"{}"), logprobs=ContentLogprobs(()))
    assert plain(chunk) == Chunk(text="a")
