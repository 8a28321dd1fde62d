"""Embeddings and rankings through the gateway over real sockets: split, joined, failed over, counted, refused."""

import base64
import gc
import struct
from collections.abc import AsyncIterator
from typing import cast

import orjson
import pytest
import pytest_asyncio

from providers.json_types import JsonObject, JsonValue
from tests.proxy.kit.gateway_rig import CLIENT_KEY, Rig, rig
from tests.proxy.kit.raw_client import Answer
from tests.proxy.kit.tables import digest_of
from tests.support.http_scripts import body_answer, json_answer
from tests.support.vendor_script import Delay, Hang, Received, Script

AT = 'api_key: k, base_url: "http://127.0.0.1:PORT/v1", allow_private: true'
TABLE = f"""
defaults: {{retries: {{attempts: 2}}}}
vendors:
  v: {{profile: openai, {AT}, price: {{input: 1000, output: 3000}}}}
  ten: {{profile: dashscope, {AT}}}
  plain: {{profile: together, {AT}, price: {{input: 1000}}}}
  c: {{profile: cohere, {AT}, input_type: search_document}}
  t: {{profile: tei, {AT}}}
  a: {{profile: anthropic, {AT}}}
models:
  v/m: {{deployments: {{eu: {{}}, us: {{}}}}}}
  v/other: {{}}
  v/hasty: {{timeouts: {{total: 300ms}}}}
  ten/m: {{}}
  plain/m: {{}}
  plain/hasty: {{timeouts: {{total: 300ms}}}}
  c/m: {{}}
  t/m: {{}}
  a/m: {{}}
  a/n: {{}}
routes:
  one: v/m
  mixed: {{targets: [v/m, v/other]}}
  same: {{targets: [v/other, v/m], same_space: true}}
  falls: {{targets: [v/m], fallbacks: {{context_window: [v/other]}}}}
  chats: {{targets: [a/m, v/m], fallbacks: {{context_window: [a/n]}}}}
  mute: {{targets: [a/m, a/n]}}
teams:
  search: {{keys: ["{digest_of(CLIENT_KEY)}"], models: ["*"]}}
  closed: {{keys: ["{digest_of("closed")}"], models: ["*"], inference_extra_params: false}}
"""
PATH = "/v1/embeddings"


def embedder(request: Received) -> Script:
    """Respond as OpenAI does. The vector of a text is its length and its first character's code."""
    body = cast(JsonObject, request.json())
    inputs = cast("list[str]", body["input"])
    data: list[JsonValue] = []
    for index, text in enumerate(inputs):
        vector = [float(len(text)), float(ord(str(text)[0]))]
        shown: JsonValue = [*vector]
        if body.get("encoding_format") == "base64":
            shown = base64.b64encode(struct.pack("<2f", *vector)).decode()
        data.append({"object": "embedding", "index": index, "embedding": shown})
    count = len(inputs)
    usage: JsonObject = {"prompt_tokens": count, "total_tokens": count}
    return json_answer(200, {"object": "list", "data": [*reversed(data)], "model": "x", "usage": usage})


@pytest_asyncio.fixture
async def served() -> AsyncIterator[Rig]:
    async with rig(TABLE) as made:
        made.vendor.default = embedder
        yield made


async def embed(served: Rig, model: str = "v/m", **members: JsonValue) -> Answer:
    return await served.post(PATH, {"model": model, "input": "abc", **members})


def vectors(answer: Answer) -> list[JsonValue]:
    return [entry["embedding"] for entry in cast("list[JsonObject]", answer.json()["data"])]


# Successful responses -------------------------------------------------------------------------------------------------


@pytest.mark.smoke
@pytest.mark.parametrize("path", ["/v1/embeddings", "/embeddings"])
async def test_vectors_come_back_in_openai_s_shape(served: Rig, path: str) -> None:
    answer = await served.post(path, {"model": "v/m", "input": ["abc", "b"]})
    assert answer.status == 200
    body = answer.json()
    assert str(body.pop("id")).startswith("embd-")
    assert body == {
        "object": "list",
        "data": [
            {"object": "embedding", "index": 0, "embedding": [3.0, 97.0]},
            {"object": "embedding", "index": 1, "embedding": [1.0, 98.0]},
        ],
        "model": "v/m",
        "usage": {"prompt_tokens": 2, "total_tokens": 2},
    }
    assert answer.headers["x-dragoman-deployment"] == "v/m/eu"
    assert answer.headers["x-dragoman-attempts"] == "1"
    assert "x-dragoman-emulated" not in answer.headers


@pytest.mark.smoke
async def test_what_it_used_and_cost_is_told(served: Rig) -> None:
    await embed(served, input=["a", "b"])
    (record,) = await served.finished(1)
    assert (record.model, record.asked, record.outcome, record.stream) == ("v/m", "v/m", "ok", False)
    assert record.usage is not None
    assert record.usage.prompt_tokens == 2
    assert record.cost == pytest.approx(0.002)
    assert served.series("tokens_total")["tokens_total direction=input model=v/m team=search"] == 2


async def test_a_price_of_inputs_alone_is_enough(served: Rig) -> None:
    await embed(served, "plain/m", input=["a", "b"])
    (record,) = await served.finished(1)
    assert record.cost == pytest.approx(0.002)


async def test_a_long_batch_is_split_and_comes_back_whole(served: Rig) -> None:
    texts: list[JsonValue] = ["x" * (number + 1) for number in range(25)]
    answer = await embed(served, "ten/m", input=texts)
    assert sorted(len(cast("JsonObject", sent.json())["input"]) for sent in served.vendor.requests) == [5, 10, 10]  # type: ignore[arg-type]
    assert [cast("list[float]", vector)[0] for vector in vectors(answer)] == [number + 1.0 for number in range(25)]
    assert answer.json()["usage"] == {"prompt_tokens": 25, "total_tokens": 25}
    assert len(served.records[0].attempts) == 1


async def test_base64_comes_back_whether_the_vendor_has_it_or_numbers_alone(served: Rig) -> None:
    answer = await embed(served, "plain/m", encoding_format="base64")
    assert struct.unpack("<2f", base64.b64decode(str(vectors(answer)[0]))) == (3.0, 97.0)
    assert answer.headers["x-dragoman-emulated"] == "encoding_format"
    assert "encoding_format" not in cast(JsonObject, served.vendor.requests[0].json())
    answer = await embed(served, encoding_format="base64")
    assert struct.unpack("<2f", base64.b64decode(str(vectors(answer)[0]))) == (3.0, 97.0)
    assert "x-dragoman-emulated" not in answer.headers


async def test_what_is_left_out_and_what_is_estimated_is_named(served: Rig) -> None:
    served.vendor.default = json_answer(200, {"data": [{"index": 0, "embedding": [1.0]}]})
    answer = await embed(served, "plain/m", user="u")
    assert answer.headers["x-dragoman-dropped"] == "user"
    assert answer.headers["x-dragoman-emulated"] == "usage"
    assert answer.json()["usage"] == {"prompt_tokens": 1, "total_tokens": 1, "estimated": True}


async def test_the_table_s_use_goes_to_a_vendor_that_must_be_told(served: Rig) -> None:
    served.vendor.default = json_answer(200, {"embeddings": {"float": [[1.0]]}})
    assert (await embed(served, "c/m")).status == 200
    assert cast(JsonObject, served.vendor.requests[0].json())["input_type"] == "search_document"


async def test_an_answer_of_megabytes_comes_back_off_the_loop(served: Rig) -> None:
    vector: list[JsonValue] = [0.123456789] * 3072
    data: list[JsonValue] = [{"index": index, "embedding": vector} for index in range(100)]
    served.vendor.default = body_answer(200, orjson.dumps({"data": data}))
    answer = await embed(served, "plain/m", input=["a"] * 100)
    assert len(vectors(answer)) == 100
    assert vectors(answer)[99] == vector


@pytest.mark.parametrize("path", ["/v1/rerank", "/rerank", "/v2/rerank"])
async def test_a_ranking_comes_back_in_one_shape(served: Rig, path: str) -> None:
    served.vendor.default = json_answer(200, [{"index": 0, "score": 0.1}, {"index": 1, "score": 0.9}])
    asked: JsonObject = {"model": "t/m", "query": "q", "documents": ["a", "b"], "top_n": 1, "return_documents": True}
    answer = await served.post(path, asked)
    assert answer.json()["results"] == [{"index": 1, "relevance_score": 0.9, "document": {"text": "b"}}]
    assert answer.headers["x-dragoman-emulated"] == "return_documents, top_n, usage"
    assert served.vendor.requests[0].path == "/rerank"
    assert (await served.finished(1))[0].cost is None


RANKERS = f"""
defaults: {{retries: {{attempts: 2}}, price: {{input: 1000}}}}
vendors:
  c: {{profile: cohere, {AT}}}
  j: {{profile: jina, {AT}}}
  t: {{profile: tei, {AT}}}
models: {{c/m: {{}}, j/m: {{}}, t/m: {{}}}}
routes:
  both: {{targets: [j/m, t/m]}}
teams:
  search:
    keys: ["{digest_of(CLIENT_KEY)}"]
    models: ["*"]
    limits: {{tokens_per_day: 100M}}
    budget: [{{usd: 1000, per: day, then: reject}}]
"""
_SCORES: list[JsonValue] = [{"index": 0, "score": 0.1}, {"index": 1, "score": 0.9}]
_RANKS: list[JsonValue] = [{"index": 0, "relevance_score": 0.1}, {"index": 1, "relevance_score": 0.9}]
_TWICE: list[JsonValue] = [_RANKS[0], _RANKS[0]]
TOLD = json_answer(200, {"results": _RANKS, "usage": {"total_tokens": 50}})
UNITS = json_answer(200, {"results": _RANKS, "meta": {"billed_units": {"search_units": 1}}})
UNTOLD = json_answer(200, _SCORES)
BAD = json_answer(200, {"results": _TWICE, "usage": {"total_tokens": 7}})
UNREAD = json_answer(200, {"results": [{}], "usage": {"total_tokens": 7}})
NO = json_answer(500, {"error": {"message": "no"}})


@pytest.mark.parametrize(
    ("model", "answers", "status", "tokens", "estimated"),
    [
        ("j/m", [TOLD], 200, 50, False),
        ("c/m", [UNITS], 200, 22, True),  # 10 of the query with each document, 1 of each
        ("t/m", [UNTOLD], 200, 22, True),
        ("both", [BAD, UNTOLD], 200, 7 + 22, True),
        ("both", [UNREAD, UNTOLD], 200, 7 + 22, True),
        ("both", [NO, UNTOLD], 200, 22, True),
        ("j/m", [BAD, TOLD], 502, 7, False),
    ],
)
async def test_all_calls_of_a_ranking_count_in_limits_budgets_and_the_ledger(
    model: str, answers: list[Script], status: int, tokens: int, estimated: bool
) -> None:
    async with rig(RANKERS) as served:
        served.vendor.answer(*answers)
        answer = await served.post("/v1/rerank", {"model": model, "query": "q" * 40, "documents": ["a", "b"]})
        assert answer.status == status
        (record,) = await served.finished(1)
        assert record.counted is not None
        assert (record.counted.prompt_tokens, record.counted.estimated) == (tokens, estimated)
        assert record.cost == pytest.approx(tokens / 1000)
        used = {view.unit: view.used for view in served.limits.registry.views(*served.limits.times())}
        assert used == {"tokens": tokens, "usd": tokens * 10**6}  # nano-USD


# Attempts -------------------------------------------------------------------------------------------------------------


async def test_a_deployment_that_fails_is_followed_by_another_of_the_model(served: Rig) -> None:
    served.vendor.answer(json_answer(500, {"error": {"message": "no"}}))
    answer = await embed(served)
    assert (answer.status, answer.headers["x-dragoman-deployment"]) == (200, "v/m/us")
    assert answer.headers["x-dragoman-attempts"] == "2"


async def test_one_failed_part_fails_the_whole(served: Rig) -> None:
    served.vendor.answer(embedder, json_answer(400, {"error": {"message": "input 3 is too odd"}}))
    answer = await embed(served, "ten/m", input=["a"] * 25)
    assert (answer.status, answer.code) == (400, "invalid_value")
    assert "too odd" in answer.message


async def test_a_failed_part_alone_is_asked_for_again(served: Rig) -> None:
    late = [Delay(0.3), *json_answer(500, {"error": {"message": "busy"}})]
    served.vendor.answer(embedder, late, embedder)
    answer = await embed(served, "ten/m", input=["a"] * 30)
    assert (answer.status, len(vectors(answer))) == (200, 30)
    assert answer.headers["x-dragoman-attempts"] == "2"
    assert answer.json()["usage"] == {"prompt_tokens": 30, "total_tokens": 30}
    assert len(served.vendor.requests) == 4


async def test_an_input_that_is_too_long_is_named_as_the_client_calls_it(served: Rig) -> None:
    said = "This model's maximum context length is 8192 tokens, however you requested 9000 tokens"
    served.vendor.default = json_answer(400, {"error": {"message": said, "type": "invalid_request_error"}})
    answer = await embed(served)
    assert (answer.status, answer.code) == (400, "context_length_exceeded")
    assert answer.error()["param"] == "input"


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{}", b"<html>down</html>", b'{"data":[]}', b'{"data":[{"embedding":[]}]}'),
        b'{"data":[{"embedding":[1e999]}]}',
        b'{"data":[{"embedding":"AAA"}]}',
        b'{"data":[{"embedding":[1]},{"embedding":[1]}]}',
        b'{"data":[{"embedding":[' + b"[" * 100_000,
    ],
)
async def test_a_vendor_that_makes_no_sense_is_a_malformed_upstream(served: Rig, body: bytes) -> None:
    served.vendor.default = body_answer(200, body)
    answer = await embed(served, "plain/m")
    assert (answer.status, answer.code) == (502, "malformed_upstream")


async def test_an_answer_beyond_all_bounds_is_cut_off(served: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.upstream.call_task.MOST_BYTES", 100_000)
    served.vendor.default = body_answer(200, b'{"data":[' + b" " * 200_000 + b"]}")
    assert (await embed(served, "plain/m")).code == "malformed_upstream"


async def test_the_deadline_is_one_for_all_parts(served: Rig) -> None:
    served.vendor.default = (Hang(),)
    answer = await embed(served, "plain/hasty", input=["a"] * 200)
    assert (answer.status, answer.code) == (504, "upstream_timeout")
    assert len(served.vendor.requests) == 2


@pytest.mark.parametrize("way", ["field", "header"])
async def test_the_client_may_shorten_it(served: Rig, way: str) -> None:
    served.vendor.default = (Hang(),)
    asked: JsonObject = {"model": "ten/m", "input": "a"}
    if way == "field":
        answer = await served.post(PATH, {**asked, "inference_timeout": 0.2})
    else:
        answer = await served.post(PATH, asked, {"x-request-timeout": "0.2"})
    assert answer.code == "upstream_timeout"


# Refusals -------------------------------------------------------------------------------------------------------------


async def test_a_route_over_one_model_and_one_whose_models_share_a_space_answer(served: Rig) -> None:
    one = await embed(served, "one")
    assert (one.status, one.json()["model"]) == (200, "v/m")
    same = await embed(served, "same")
    assert (same.status, same.json()["model"]) == (200, "v/other")


@pytest.mark.parametrize("route", ["mixed", "falls"])
async def test_a_route_never_leaves_the_space(served: Rig, route: str) -> None:
    answer = await embed(served, route)
    assert (answer.status, answer.code) == (400, "invalid_value")
    assert "v/m, v/other" in answer.message
    assert "same_space: true" in answer.message
    assert served.vendor.requests == []


async def test_models_of_vendors_without_embeddings_are_no_other_space(served: Rig) -> None:
    answer = await embed(served, "chats")
    assert (answer.status, answer.headers["x-dragoman-deployment"]) == (200, "v/m/eu")
    answer = await embed(served, "mute")
    assert (answer.status, answer.error()["param"]) == (400, "model")
    assert "has no embeddings" in answer.message
    assert "comparable" not in answer.message


async def test_a_ranking_may_go_to_any_target_of_a_route(served: Rig) -> None:
    asked: JsonObject = {"model": "mixed", "query": "q", "documents": ["a"]}
    answer = await served.post("/v1/rerank", asked)
    assert "does not support rerank" in answer.message


@pytest.mark.parametrize(
    ("members", "param"),
    [
        ({"model": "plain/m", "dimensions": 8}, "dimensions"),
        ({"model": "ten/m", "input": [1, 2]}, "input"),
        ({"input": []}, "input"),
        ({"stream": True}, "stream"),
        ({"output_dtype": "int8"}, "output_dtype"),
    ],
)
async def test_what_cannot_be_honoured_is_refused_by_name(served: Rig, members: JsonObject, param: str) -> None:
    answer = await served.post(PATH, {"model": "v/m", "input": "a", **members})
    assert answer.status == 400
    assert cast(JsonObject, answer.json()["error"])["param"] == param
    assert served.vendor.requests == []


async def test_a_team_may_be_kept_from_members_that_go_along(served: Rig) -> None:
    answer = await served.post(PATH, {"model": "v/m", "input": "a", "odd": 1}, {"Authorization": "Bearer closed"})
    assert (answer.status, answer.code) == (400, "unsupported_parameter")
    assert (await embed(served, odd=1)).status == 200
    assert cast(JsonObject, served.vendor.requests[0].json())["odd"] == 1


async def test_an_unknown_model_and_a_wrong_key_are_refused_as_for_chat(served: Rig) -> None:
    assert (await embed(served, "v/none")).code == "model_not_found"
    answer = await served.post(PATH, {"model": "v/m", "input": "a"}, {"Authorization": "Bearer wrong"})
    assert answer.code == "invalid_api_key"
    assert (await served.get(PATH)).status == 405


async def test_a_vendor_that_only_embeds_does_not_chat(served: Rig) -> None:
    answer = await served.post("/v1/chat/completions", {"model": "t/m", "messages": [{"role": "user", "content": "a"}]})
    assert answer.status == 400
    assert "the vendor generates no text" in answer.message


async def test_a_request_leaves_no_cycle_behind(served: Rig) -> None:
    for _ in range(3):
        await embed(served, "ten/m", input=["a"] * 25)
    gc.collect()
    gc.disable()
    try:
        await embed(served, "ten/m", input=["a"] * 25)
        found = gc.collect()
    finally:
        gc.enable()
    assert found < 200
