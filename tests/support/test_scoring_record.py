"""The recorder forwards every byte and records completions only, and the committed recordings can be read."""

import aiohttp
import orjson

from tests.support.http_scripts import body_answer, json_answer
from tests.support.looped import looped
from tests.support.scoring_client import SCENARIOS
from tests.support.scoring_record import load, running_relay
from tests.support.vendor import FakeVendor


async def test_only_what_the_engine_answered_well_is_kept() -> None:
    async with FakeVendor() as engine:
        engine.answer_path("/v1/completions", body_answer(200, b'{"a":1.0}'))
        engine.answer_path("/tokenizer_info", json_answer(404, {}))
        async with running_relay(engine.base_url) as (relay, url), aiohttp.ClientSession(url) as http:
            async with http.get("/tokenizer_info?x=1") as missing:
                pass
            async with http.post("/v1/completions", data=b'{"b": 2}', headers={"x-y": "z"}) as found:
                body = await found.read()
    assert (missing.status, found.status, body) == (404, 200, b'{"a":1.0}')
    heard = [(request.method, request.target, request.body) for request in engine.requests]
    assert heard == [("GET", "/tokenizer_info?x=1", b""), ("POST", "/v1/completions", b'{"b": 2}')]
    (kept,) = relay.exchanges
    assert (kept["path"], kept["body"], kept["answer"]) == ("/v1/completions", '{"b": 2}', '{"a":1.0}')
    assert kept["headers"]["x-y"] == "z"
    assert kept["headers"].keys().isdisjoint({"host", "content-length", "connection"})


@looped("name", SCENARIOS)
def test_a_recording_holds_an_answer_for_each_prompt_and_a_score_for_each_text(name: str) -> None:
    recording, scenario = load(name), SCENARIOS[name]
    for exchange in recording.exchanges:
        body, answer = orjson.loads(exchange["body"]), orjson.loads(exchange["answer"])
        assert (body["echo"], body["logprobs"], body["max_tokens"], body["temperature"]) == (True, 1, 1, 0)
        assert [choice["index"] for choice in answer["choices"]] == list(range(len(body["prompt"])))
    assert (len(recording.scores.pairs), len(recording.scores.texts)) == (len(scenario.pairs), len(scenario.texts))
