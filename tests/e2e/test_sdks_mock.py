"""The vendors' own SDKs, unmodified, with the gateway and the mock vendor behind it: non-streaming and streamed
responses."""

from dataclasses import dataclass

import pytest

from providers.json_types import JsonObject, JsonValue
from tests.e2e.kit import CLIENTS, Sdks, choices_of, gateway_of, totals
from tests.support.clients import RECIPES, USUAL, Options, Outcome
from tests.support.looped import looped

pytestmark = CLIENTS

TABLE = """\
version: 1
vendors:
  mock: {}
  fireworks: {profile: mock} # stands behind bare names on its own surface
  pais: {profile: mock}
models:
  mock/echo: {context_window: 4096}
  mock/*: {}
  mock/long-3: {}
  mock/long-40: {}
  fireworks/accounts/acme/models/echo: {upstream_model: echo}
  pais/echo: {}
"""

PAIS = Options(prefix="/api/v1/compatibility/openai/v1")
TEXT = "Say hi now"
PIECES = ["Say", " hi", " now"]
ASK: JsonObject = {"model": "mock/echo", "prompt": TEXT}
CHAT: JsonObject = {"model": "mock/echo", "messages": [{"role": "user", "content": TEXT}]}
WITH_USAGE: JsonObject = {"stream_options": {"include_usage": True}}


AZURE = Options(prefix="/openai")


@dataclass(frozen=True, slots=True)
class Way:
    """One SDK with one surface, and the peculiarities of its streams' usage.

    `unasked` and `asked` give the position of the usage for clients that did not and did request it: on no frame, on
    the `finish` frame, or on a frame of its own after it (`extra`).
    """

    sdk: str
    unasked: str
    asked: str
    options: Options = USUAL


WAYS = {
    "openai2": Way("openai2", "nowhere", "extra"),
    "openai3": Way("openai3", "nowhere", "extra"),
    "scale_gp_a58": Way("scale_gp_a58", "finish", "finish"),
    "scale_gp": Way("scale_gp", "finish", "finish"),
    "scale_gp_beta": Way("scale_gp_beta", "finish", "finish"),
    "fireworks0": Way("fireworks0", "finish", "extra"),
    "fireworks0 with a doubled v1": Way("fireworks0", "finish", "extra", Options(prefix="/inference/v1/v1")),
    "fireworks1": Way("fireworks1", "finish", "extra"),
    "fireworks1 with v1": Way("fireworks1", "finish", "extra", Options(prefix="/inference/v1")),
    "openai2 for Azure": Way("openai2", "nowhere", "extra", AZURE),
    "openai3 for Azure": Way("openai3", "nowhere", "extra", AZURE),
    "openai3 to pais": Way("openai3", "nowhere", "extra", PAIS),
}
EVERY = looped("way", [pytest.param(way, id=name) for name, way in WAYS.items()])
KINDS = looped(("kind", "fields"), [("completion", ASK), ("chat", CHAT)])
OPENAI = pytest.mark.parametrize("name", ["openai2", "openai3"])


gateway = gateway_of(TABLE)


def id_prefix(kind: str) -> str:
    """Return the prefix of a response's id."""
    return "cmpl-" if kind == "completion" else "chatcmpl-"


def places_of_usage(outcome: Outcome) -> list[int]:
    """Return the positions of the chunks with a usage, counted from the end."""
    count = len(outcome["chunks"])
    return [position - count for position, chunk in enumerate(outcome["chunks"]) if chunk.get("usage")]


def test_every_sdk_is_driven() -> None:
    assert {way.sdk for way in WAYS.values()} == RECIPES.keys()


@EVERY
@KINDS
async def test_a_whole_answer_reaches_the_sdk_in_its_own_shape(
    way: Way, kind: str, fields: JsonObject, sdks: Sdks
) -> None:
    outcome = await sdks.run(way.sdk, kind, fields, way.options)
    assert outcome["error"] is None
    assert (outcome["text"], outcome["finish_reason"]) == (TEXT, "stop")
    assert totals(outcome["usage"]) == [3, 3, 6]
    answer = outcome["result"]
    assert answer["id"].startswith(id_prefix(kind))
    assert answer["object"] == ("text_completion" if kind == "completion" else "chat.completion")
    assert answer["model"] == "mock/echo"
    assert isinstance(answer["created"], int)
    assert [(choice["index"], choice["logprobs"]) for choice in answer["choices"]] == [(0, None)]


@EVERY
@KINDS
async def test_a_stream_reaches_the_sdk_frame_by_frame_and_ends_well(
    way: Way, kind: str, fields: JsonObject, sdks: Sdks
) -> None:
    outcome = await sdks.run(way.sdk, f"{kind}_stream", fields, way.options)
    assert outcome["error"] is None
    assert outcome["text"] == TEXT
    chunks = outcome["chunks"]
    pieces = [choice.get("text") or (choice.get("delta") or {}).get("content") for choice in choices_of(outcome)]
    assert pieces[:3] == PIECES
    assert len(chunks) == 4
    assert [choice["finish_reason"] for choice in choices_of(outcome)] == [None, None, None, "stop"]
    assert len({(chunk["id"], chunk["created"], chunk["model"], chunk["object"]) for chunk in chunks}) == 1
    assert chunks[0]["id"].startswith(id_prefix(kind))
    assert chunks[0]["model"] == "mock/echo"
    assert chunks[0]["object"] == ("text_completion" if kind == "completion" else "chat.completion.chunk")
    assert places_of_usage(outcome) == ([-1] if way.unasked == "finish" else [])
    assert totals(outcome["usage"]) == ([3, 3, 6] if way.unasked == "finish" else None)


@EVERY
@KINDS
async def test_usage_that_was_asked_for_comes_where_the_surface_has_it(
    way: Way, kind: str, fields: JsonObject, sdks: Sdks
) -> None:
    # fireworks-ai 1.x has no argument for it.
    asked: JsonObject = {"extra_body": WITH_USAGE} if way.sdk == "fireworks1" else WITH_USAGE
    outcome = await sdks.run(way.sdk, f"{kind}_stream", {**fields, **asked}, way.options)
    assert outcome["error"] is None
    assert totals(outcome["usage"]) == [3, 3, 6]
    assert places_of_usage(outcome) == [-1]
    own_frame = outcome["chunks"][-1]["choices"] == []
    assert own_frame is (way.asked == "extra")
    assert len(outcome["chunks"]) == (5 if own_frame else 4)


@OPENAI
async def test_frames_before_the_usage_say_null_to_those_who_asked_and_nothing_to_others(name: str, sdks: Sdks) -> None:
    asked = await sdks.run(name, "completion_stream", {**ASK, **WITH_USAGE})
    assert [chunk["usage"] for chunk in asked["chunks"][:-1]] == [None] * 4
    unasked = await sdks.run(name, "completion_stream", ASK)
    assert all("usage" not in chunk for chunk in unasked["chunks"])


@looped("kind", ["completion", "completion_stream"])
@EVERY
async def test_an_integer_of_logprobs_gives_the_four_arrays(way: Way, kind: str, sdks: Sdks) -> None:
    fields: JsonObject = {**ASK, "logprobs": 2}
    if way.sdk == "scale_gp_a58":  # its own argument is a boolean
        fields = {**ASK, "extra_body": {"logprobs": 2}}
    outcome = await sdks.run(way.sdk, kind, fields, way.options)
    assert outcome["error"] is None
    found = [choice["logprobs"] for choice in choices_of(outcome) if choice["logprobs"]]
    assert [token for part in found for token in part["tokens"]] == PIECES
    assert [offset for part in found for offset in part["text_offset"]] == [10, 13, 16]
    numbers = [number for part in found for number in part["token_logprobs"]]
    tops = [top for part in found for top in part["top_logprobs"]]
    assert all(number < 0 for number in numbers)
    assert [top[token] for top, token in zip(tops, PIECES, strict=True)] == numbers
    assert {len(top) for top in tops} == {2}
    assert all(not part.get("content") for part in found)


async def test_true_for_logprobs_gives_both_forms_to_who_asks_so(sdks: Sdks) -> None:
    fields: JsonObject = {**ASK, "logprobs": True, "top_logprobs": 1}
    outcome = await sdks.run("scale_gp_a58", "completion", fields)
    logprobs = outcome["result"]["choices"][0]["logprobs"]
    assert [entry["token"] for entry in logprobs["content"]] == PIECES == logprobs["tokens"]
    assert [entry["logprob"] for entry in logprobs["content"]] == logprobs["token_logprobs"]
    assert [entry["bytes"] for entry in logprobs["content"]] == [list(piece.encode()) for piece in PIECES]


@pytest.mark.parametrize("kind", ["chat", "chat_stream"])
@OPENAI
async def test_chat_gives_logprobs_as_entries(name: str, kind: str, sdks: Sdks) -> None:
    outcome = await sdks.run(name, kind, {**CHAT, "logprobs": True, "top_logprobs": 2})
    entries = [entry for choice in choices_of(outcome) for entry in (choice["logprobs"] or {}).get("content", [])]
    assert [entry["token"] for entry in entries] == PIECES
    assert [len(entry["top_logprobs"]) for entry in entries] == [2, 2, 2]


@OPENAI
@pytest.mark.parametrize("options", [USUAL, Options(prefix=""), PAIS], ids=["v1", "bare", "pais"])
async def test_models_are_listed_and_found_by_their_whole_name(name: str, options: Options, sdks: Sdks) -> None:
    listed = await sdks.run(name, "models", {}, options)
    cards = {card["id"]: card for card in listed["result"]["data"]}
    lengths = ["mock/long-3", "mock/long-40"]
    assert list(cards) == ["mock/echo", *lengths, "fireworks/accounts/acme/models/echo", "pais/echo"]
    assert cards["mock/echo"]["max_model_len"] == 4096
    assert "max_model_len" not in cards["pais/echo"]
    for model, card in cards.items():
        assert (card["object"], card["root"], card["owned_by"]) == ("model", model, model.partition("/")[0])
        found = await sdks.run(name, "model", {"model": model}, options)
        assert found["result"] == card


@looped("name", ["fireworks0", "fireworks1"])
@looped("kind", ["completion", "completion_stream"])
async def test_a_name_without_vendor_is_the_surfaces_own_and_comes_back_as_asked(
    name: str, kind: str, sdks: Sdks
) -> None:
    model = "accounts/acme/models/echo"
    outcome = await sdks.run(name, kind, {**ASK, "model": model})
    assert (outcome["error"], outcome["text"]) == (None, TEXT)
    assert {answer["model"] for answer in outcome["chunks"] or [outcome["result"]]} == {model}


async def test_a_name_without_vendor_on_private_ai_s_path_is_theirs(sdks: Sdks) -> None:
    outcome = await sdks.run("openai3", "chat", {**CHAT, "model": "echo"}, PAIS)
    assert (outcome["error"], outcome["text"]) == (None, TEXT)
    elsewhere = await sdks.run("openai3", "chat", {**CHAT, "model": "echo"})
    assert elsewhere["error"] is not None
    assert elsewhere["error"]["status_code"] == 404


@EVERY
async def test_only_openais_own_completions_stop_after_sixteen_tokens_unasked(way: Way, sdks: Sdks) -> None:
    outcome = await sdks.run(way.sdk, "completion", {**ASK, "model": "mock/long-40"}, way.options)
    openai = way.sdk.startswith("openai") and way.options is not PAIS
    assert outcome["finish_reason"] == ("length" if openai else "stop")
    assert outcome["usage"] is not None
    assert outcome["usage"]["completion_tokens"] == (16 if openai else 40)


@looped("kind", ["completion", "completion_stream"])
@EVERY
async def test_two_answers_to_one_prompt_differ(way: Way, kind: str, sdks: Sdks) -> None:
    outcome = await sdks.run(way.sdk, kind, {**ASK, "model": "mock/long-3", "n": 2}, way.options)
    assert outcome["error"] is None
    texts = {0: "", 1: ""}
    for choice in choices_of(outcome):
        texts[choice["index"]] += str(choice["text"])
    assert sorted(texts) == [0, 1]
    assert texts[0] != texts[1]
    ends = [choice["index"] for choice in choices_of(outcome) if choice["finish_reason"]]
    assert sorted(map(str, ends)) == ["0", "1"]


@EVERY
async def test_a_stop_string_ends_the_text_before_it(way: Way, sdks: Sdks) -> None:
    outcome = await sdks.run(way.sdk, "completion", {**ASK, "stop": [" now"]}, way.options)
    assert (outcome["error"], outcome["text"], outcome["finish_reason"]) == (None, "Say hi", "stop")


async def test_fields_that_only_the_first_scale_schema_has_count(sdks: Sdks) -> None:
    scale = "scale_gp_a58"
    chosen = await sdks.run(scale, "completion", {**ASK, "guided_choice": ["red", "blue"]})
    assert chosen["text"] in {"red", "blue"}
    short = await sdks.run(scale, "completion", {**ASK, "max_new_tokens": 2})
    assert (short["text"], short["finish_reason"]) == ("Say hi", "length")
    stopped = await sdks.run(scale, "completion", {**ASK, "stop_sequences": [" hi"]})
    assert stopped["text"] == "Say"


@OPENAI
async def test_several_prompts_are_answered_in_order(name: str, sdks: Sdks) -> None:
    prompts: list[JsonValue] = ["first", "second", "third"]
    outcome = await sdks.run(name, "completion", {**ASK, "prompt": prompts})
    assert [choice["text"] for choice in choices_of(outcome)] == prompts
    assert [choice["index"] for choice in choices_of(outcome)] == [0, 1, 2]
    assert totals(outcome["usage"]) == [3, 3, 6]


@OPENAI
async def test_the_request_id_is_shown_and_always_another(name: str, sdks: Sdks) -> None:
    seen = {(await sdks.run(name, "chat", CHAT))["request_id"] for _ in range(2)}
    assert len(seen) == 2
    assert None not in seen
