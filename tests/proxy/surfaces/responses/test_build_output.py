"""Items of a response built from its chunks: in order, never two open, bounded."""

from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.completion import Chunk, ContentLogprobs, Extras, TokenLogprob, ToolCallDelta
from providers.failure import UpstreamError
from providers.json_types import JsonObject
from proxy.surfaces.responses.build_output import MAX_STREAMED_ITEMS, MAX_TEXT
from proxy.surfaces.thinking_envelope import open_sealed
from tests.proxy.surfaces.responses.kit import final, output, play, read, rendering, streamed, typed
from tests.support.looped import looped

END = Chunk(finish_reason="stop")
CALLS = Chunk(finish_reason="tool_calls")


def call(index: int, arguments: str = "", name: str | None = None) -> Chunk:
    return Chunk(tool_calls=(ToolCallDelta(index, f"c{index}" if name else None, name, arguments),))


def kinds(items: list[JsonObject]) -> list[object]:
    return [item["type"] for item in items]


def only_part(message: JsonObject) -> JsonObject:
    assert isinstance(message["content"], list)
    (part,) = message["content"]
    assert isinstance(part, dict)
    return part


def check_no_overlap(found: list[JsonObject]) -> None:
    """Fail unless each item is opened at the next index and closed before the next one is opened."""
    opened: object = None
    done: list[JsonObject] = []
    for event in found:
        if event["type"] == "response.output_item.added":
            assert opened is None
            assert event["output_index"] == len(done)
            opened = event["output_index"]
        elif event["type"] == "response.output_item.done":
            assert event["output_index"] == opened
            opened = None
            item = event["item"]
            assert isinstance(item, dict)
            done.append(item)
        elif "output_index" in event:
            assert event["output_index"] == opened
    assert opened is None
    assert [uncited(item) for item in output(final(found))] == [uncited(item) for item in done]


def uncited(item: JsonObject) -> JsonObject:
    """Return an item without citations. Only the final response has the citations that came after their text was
    done."""
    parts = item.get("content")
    if not isinstance(parts, list):
        return item
    return {**item, "content": [{**part, "annotations": []} for part in parts if isinstance(part, dict)]}


def test_thinking_text_and_calls_are_items_in_the_order_in_which_they_begin() -> None:
    found = streamed(Chunk(reasoning="h"), Chunk(text="a"), Chunk(text="b"), call(0, "{", "f"), call(0, "}"), CALLS)
    check_no_overlap(found)
    items = output(final(found))
    assert [item["id"] for item in items] == ["rs_u1_0", "msg_u1_1", "fc_u1_2"]
    assert items[2]["arguments"] == "{}"


def test_parallel_calls_whose_pieces_come_in_turns_are_held_back() -> None:
    found = streamed(call(0, "{", "f"), call(1, "[", "g"), call(0, "}"), call(1, "]"), CALLS)
    check_no_overlap(found)
    assert [(item["name"], item["arguments"], item["call_id"]) for item in output(final(found))] == [
        ("f", "{}", "c0"),
        ("g", "[]", "c1"),
    ]


def test_text_and_thinking_during_a_call_follow_it() -> None:
    found = streamed(call(0, "{", "f"), Chunk(text="a"), Chunk(reasoning="h"), call(0, "}"), Chunk(text="b"), CALLS)
    check_no_overlap(found)
    items = output(final(found))
    assert kinds(items) == ["function_call", "reasoning", "message"]
    assert items[2]["content"] == [typed("output_text", text="ab", annotations=[], logprobs=[])]


def test_a_call_of_a_namespace_has_its_bare_name() -> None:
    tools = [typed("namespace", name="ns", tools=[typed("function", name="a"), typed("custom", name="b")])]
    custom = Chunk(tool_calls=(ToolCallDelta(1, "c1", "ns__b", 'say "hi" \\u00e9', "custom"),))
    items = output(final(streamed(call(0, "{}", "ns__a"), custom, CALLS, tools=[*tools])))
    assert [(item["type"], item["namespace"], item["name"]) for item in items] == [
        ("function_call", "ns", "a"),
        ("custom_tool_call", "ns", "b"),
    ]
    assert items[1]["input"] == 'say "hi" \\u00e9'


def test_what_a_vendor_wants_back_is_sealed_in_the_item() -> None:
    block: JsonObject = {"type": "reasoning.text", "text": "h", "index": 0, "format": "f"}
    found = streamed(
        Chunk(reasoning="h", extras=Extras(reasoning_details=(block,))),
        Chunk(extras=Extras(reasoning_details=({"type": "reasoning.text", "index": 0, "signature": "s"},))),
        Chunk(text="a"),
        END,
    )
    item = output(final(found))[0]
    assert open_sealed(str(item["encrypted_content"])) == [{**block, "signature": "s"}]


def test_hidden_thinking_is_an_item_without_text() -> None:
    hidden = Extras(reasoning_details=({"type": "reasoning.encrypted", "data": "x"},))
    items = output(final(streamed(Chunk(extras=hidden), Chunk(text="a"), END)))
    assert kinds(items) == ["reasoning", "message"]
    assert items[0]["summary"] == []


def test_citations_have_offsets_in_their_own_message_and_without_one_open_it() -> None:
    cited = typed("url_citation", url_citation={"url": "https://x", "title": "t", "start_index": 3, "end_index": 4})
    found = streamed(
        Chunk(text="ab"), Chunk(reasoning="h"), Chunk(text="cd"), Chunk(extras=Extras(annotations=(cited,))), END
    )
    assert only_part(output(final(found))[2])["annotations"] == [
        typed("url_citation", url="https://x", title="t", start_index=1, end_index=2)
    ]


def cited(start: int, end: int) -> Chunk:
    citation: JsonObject = {"url": "u", "title": "", "start_index": start, "end_index": end}
    return Chunk(extras=Extras(annotations=(typed("url_citation", url_citation=citation),)))


@looped(
    ("chunks", "spans"),
    [
        pytest.param([Chunk(text="abc"), cited(1, 3)], [[(1, 3)]], id="behind the text"),
        pytest.param([cited(0, 3), Chunk(text="abc")], [[(0, 3)]], id="before the text"),
        pytest.param([Chunk(text="abc"), Chunk(reasoning="h"), cited(1, 3)], [[(1, 3)]], id="after its item"),
        pytest.param(
            [Chunk(text="abc"), Chunk(reasoning="h"), Chunk(text="de"), cited(1, 3), cited(4, 5)],
            [[(1, 3)], [(1, 2)]],
            id="of an earlier message and the open one",
        ),
        pytest.param([Chunk(text="abc"), call(0, "{}", "f"), cited(1, 3)], [[(1, 3)]], id="behind a call"),
        pytest.param([Chunk(text="ab"), Chunk(refusal="no"), cited(0, 2)], [[(0, 2)]], id="of a part before a refusal"),
        pytest.param([Chunk(text="ab"), Chunk(reasoning="h"), cited(2, 2)], [[(2, 2)]], id="at the end of all text"),
    ],
)
def test_a_citation_is_of_the_part_that_it_cites(chunks: list[Chunk], spans: list[list[tuple[int, int]]]) -> None:
    found = streamed(*chunks, END)
    check_no_overlap(found)
    listed: list[list[tuple[object, object]]] = []
    for item in output(final(found)):
        for part in cast(list[JsonObject], item["content"]) if item["type"] == "message" else ():
            if part["type"] == "output_text":
                annotations = cast(list[JsonObject], part["annotations"])
                listed.append([(each["start_index"], each["end_index"]) for each in annotations])
    assert listed == spans


def test_citations_without_a_text_stand_beside_the_output() -> None:
    response = final(streamed(Chunk(extras=Extras(annotations=(typed("file", file={"x": 1}),))), END))
    assert (output(response), response["annotations"]) == ([], [typed("file", file={"x": 1})])


def test_pictures_are_items_and_addresses_stay_beside() -> None:
    def image(url: str) -> JsonObject:
        return typed("image_url", image_url={"url": url})

    pictures = (image("data:image/png;base64,AAAA"), image("https://x/y.png"))
    response = final(streamed(Chunk(extras=Extras(images=pictures)), END))
    assert output(response) == [typed("image_generation_call", id="ig_u1_0", status="completed", result="AAAA")]
    assert response["images"] == [image("https://x/y.png")]


def test_what_has_no_place_in_an_item_stands_in_the_response_under_the_vendor_s_name() -> None:
    extras = Extras(message={"steps": [1]}, choice={"filters": {}}, answer={"citations": ["u"], "id": "no"})
    response = final(streamed(Chunk(text="a", extras=extras), END))
    assert (response["steps"], response["filters"], response["citations"]) == ([1], {}, ["u"])
    assert response["id"] == "resp_u1"


def test_a_refusal_is_shown_once_and_a_signature_of_the_text_beside_it() -> None:
    items = output(final(streamed(Chunk(text="no", refusal="no"), END)))
    assert items[0]["content"] == [typed("refusal", refusal="no")]
    items = output(final(streamed(Chunk(text="a"), Chunk(signature="s"), END)))
    assert items[0]["extra_content"] == {"google": {"thought_signature": "s"}}


HIDDEN: JsonObject = {"type": "reasoning.encrypted", "data": "s", "format": "google-gemini-v1", "index": 0}
OPENAIS: JsonObject = {**HIDDEN, "format": "openai-responses-v1", "id": "rs_1"}


def hidden(detail: JsonObject = OPENAIS, **members: str) -> Chunk:
    return Chunk(extras=Extras(reasoning_details=(detail,)), **members)  # type: ignore[arg-type]


@looped(
    ("chunks", "expected"),
    [
        ([Chunk(text="a"), hidden(HIDDEN, signature="s")], "message"),
        ([Chunk(text="a"), hidden()], "message"),
        ([hidden(HIDDEN), Chunk(text="a")], "message"),
        ([hidden(), Chunk(text="a")], "reasoning message"),
        ([Chunk(text="a"), hidden(), call(0, "{}", "f")], "message reasoning function_call"),
        ([Chunk(text="a"), call(0, "{}", "f"), hidden()], "message function_call reasoning"),
    ],
)
def test_no_item_but_those_of_calls_follows_the_last_text(chunks: list[Chunk], expected: str) -> None:
    found = streamed(*chunks, END)
    check_no_overlap(found)
    items = output(final(found))
    assert kinds(items) == expected.split()
    sealed = [item["encrypted_content"] for item in items if "encrypted_content" in item]
    assert len(sealed) + sum("extra_content" in item for item in items) == 1
    if expected == "message" and sealed:
        (reread,) = read(*items)
        (detail,) = cast(list[JsonObject], reread["reasoning_details"])
        assert detail["data"] == "s"


def test_lists_beside_the_output_and_a_sound_are_whole() -> None:
    def extras(number: int) -> Extras:
        listed: JsonObject = {"steps": [number]}
        sound: JsonObject = {"id": "a", "data": f"{number}"}
        return Extras(message=listed, choice={"filters": [number]}, answer={"citations": [number]}, audio=sound)

    response = final(streamed(Chunk(text="a", extras=extras(1)), Chunk(extras=extras(2)), END))
    assert [response[name] for name in ("steps", "filters", "citations")] == [[1, 2]] * 3
    assert response["audio"] == {"id": "a", "data": "12"}


def test_log_probabilities_come_with_their_text() -> None:
    odds = ContentLogprobs((TokenLogprob("a", -0.5, (97,)),))
    found = streamed(Chunk(text="a", logprobs=odds), Chunk(text="b", logprobs=odds), END, top_logprobs=1)
    shown = {"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": []}
    deltas = [event["logprobs"] for event in found if event["type"] == "response.output_text.delta"]
    assert deltas == [[shown], [shown]]
    assert only_part(output(final(found))[0])["logprobs"] == [shown, shown]


@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_the_item_at_which_an_answer_was_cut_is_incomplete(reason: str) -> None:
    items = output(final(streamed(Chunk(text="a"), call(0, '{"a', "f"), Chunk(finish_reason=reason))))
    assert [item["status"] for item in items] == ["completed", "incomplete"]
    held = output(final(streamed(call(0, "{}", "f"), call(1, '{"a', "g"), Chunk(finish_reason=reason))))
    assert [item["status"] for item in held] == ["completed", "incomplete"]
    text = output(final(streamed(call(0, "{}", "f"), Chunk(text="a"), Chunk(finish_reason=reason))))
    assert [item["status"] for item in text] == ["completed", "incomplete"]
    thought = output(final(streamed(call(0, "{}", "f"), Chunk(reasoning="a"), Chunk(finish_reason=reason))))
    assert [item["status"] for item in thought] == ["completed", "incomplete"]


pieces = st.one_of(
    st.builds(lambda text: Chunk(text=text), st.text(max_size=3)),
    st.builds(lambda text: Chunk(reasoning=text), st.text(max_size=3)),
    st.builds(lambda text: Chunk(refusal=text), st.text(min_size=1, max_size=3)),
    st.builds(lambda index, text: call(index, text, "f"), st.integers(0, 3), st.text(max_size=3)),
    st.just(Chunk(extras=Extras(annotations=(typed("url_citation", url="u"),)))),
)


@given(st.lists(pieces, max_size=30))
def test_items_never_overlap_and_nothing_is_lost(chunks: list[Chunk]) -> None:
    found = streamed(*chunks, END)
    check_no_overlap(found)
    items = output(final(found))
    said = "".join(
        str(part["text"])
        for item in items
        if item["type"] == "message" and isinstance(item["content"], list)
        for part in item["content"]
        if isinstance(part, dict) and part["type"] == "output_text"
    )
    assert sorted(said) == sorted("".join(chunk.text for chunk in chunks))
    calls = {each.tool_calls[0].index for each in chunks if each.tool_calls}
    assert len([item for item in items if item["type"] == "function_call"]) == len(calls)


def test_a_model_that_turns_between_thinking_and_text_forever_gets_a_bounded_number_of_items() -> None:
    turns = [Chunk(text="a") if number % 2 else Chunk(reasoning="b") for number in range(30_000)]
    stream = play(rendering(stream=True), *turns, END)
    assert len(stream) < 6 * 2**20
    assert stream.count(b"event: response.output_item.added\n") <= MAX_STREAMED_ITEMS + 2


@pytest.mark.thorough
def test_tiny_pieces_of_calls_in_turns_are_joined_in_one_pass() -> None:
    turns = [call(number % 4, "x", f"f{number % 4}" if number < 4 else None) for number in range(100_000)]
    found = streamed(*turns, CALLS)
    check_no_overlap(found)
    assert [item["arguments"] for item in output(final(found))] == ["x" * 25_000] * 4


@looped(
    "piece",
    [
        Chunk(text="x" * (MAX_TEXT // 2)),
        Chunk(reasoning="x" * (MAX_TEXT // 2)),
        Chunk(refusal="x" * (MAX_TEXT // 2)),
        call(0, "x" * (MAX_TEXT // 2)),
    ],
    ids=["text", "reasoning", "refusal", "call"],
)
def test_an_answer_that_is_too_long_to_be_repeated_breaks(piece: Chunk) -> None:
    renderer = rendering(stream=True)
    renderer.chunk(Chunk(text="a"))
    renderer.chunk(piece)
    renderer.chunk(Chunk(text="a"))
    with pytest.raises(UpstreamError):
        renderer.chunk(piece)
