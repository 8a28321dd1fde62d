"""The cases about context windows, names and control fields. A test's name has the numbers of its cases, from 1 to
76."""

from collections.abc import Callable

import pytest

from providers.json_types import JsonObject, JsonValue
from tests.proxy.kit.api_cases import (
    CHAT,
    FIREWORKS,
    OPENAI,
    PAIS,
    PATHS,
    SCALE_V4,
    SCALE_V5,
    TABLE,
    calls,
    choice,
    either,
    emulated,
    error,
    sent,
    streamed,
    texts,
    whole,
)
from tests.proxy.kit.gateway_rig import TABLE as TEAMS
from tests.proxy.kit.gateway_rig import Rig, ask, gateway_fixture, rig
from tests.proxy.kit.raw_client import exchange, request
from tests.support.http_scripts import json_answer
from tests.support.looped import looped
from tests.support.vendor_script import Received, Script

BOTH = pytest.mark.parametrize("stream", [False, True])
TRUNCATE: JsonObject = {"context_length_exceeded_behavior": "truncate"}
ERROR: JsonObject = {"context_length_exceeded_behavior": "error"}


served = gateway_fixture(TABLE)


# Names and keys ------------------------------------------------------------------------------------------------------


async def test_43_a_vendors_own_name_may_hold_slashes(served: Rig) -> None:
    served.vendor.default = whole(choice("x"))
    answer = await served.post(OPENAI, ask("fireworks/accounts/fireworks/models/llama-v3"))
    assert (answer.status, calls(served)[0]["model"]) == (200, "accounts/fireworks/models/llama-v3")


async def test_44_a_bare_name_on_fireworks_path_is_fireworks_with_all_its_marks(served: Rig) -> None:
    served.vendor.default = whole(choice("x"))
    name = "accounts/acme/models/x#accounts/acme/deployments/y"
    answer = await served.post(FIREWORKS, ask(name))
    assert (answer.status, calls(served)[0]["model"], answer.json()["model"]) == (200, name, name)


async def test_45_a_name_whose_head_is_no_vendor_is_the_tables_or_the_default_vendors(served: Rig) -> None:
    served.vendor.default = whole(choice("x"))
    name = "meta-llama/Llama-3-8b"
    assert (await served.post(FIREWORKS, ask(name))).status == 200
    missing = await served.post(OPENAI, ask(name))
    assert (missing.status, missing.code) == (404, "model_not_found")
    served.table(f"{TABLE}  {name}: {{targets: [both/llama]}}\n")
    assert (await served.post(OPENAI, ask(name))).status == 200
    assert [body["model"] for body in calls(served)] == [name, "llama"]


async def test_47_names_are_matched_as_they_are(served: Rig) -> None:
    for name in ("Both/m", "BOTH/m"):
        missing = await served.post(OPENAI, ask(name))
        assert (missing.status, missing.code) == (404, "model_not_found")
    served.vendor.default = whole(choice("x"))
    await served.post(OPENAI, ask("both/Some Model"))
    assert calls(served)[0]["model"] == "Some Model"


async def test_48_fireworks_doubled_version_is_served(served: Rig) -> None:
    served.vendor.default = whole(choice("x"))
    assert (await served.post("/inference/v1/v1/completions", ask("both/m"))).status == 200


@looped(
    ("path", "good", "other"),
    [(OPENAI, "Authorization", "x-api-key"), (PAIS, "Authorization", "x-api-key"), (SCALE_V4, "x-api-key", "api-key")],
)
async def test_49_of_two_keys_the_surfaces_own_header_counts(path: str, good: str, other: str) -> None:
    async with rig(TEAMS) as served:
        served.vendor.default = whole(choice("x"))
        key = {"Authorization": "Bearer ads", "x-api-key": "ads"}[good]
        for headers, status in (
            ({good: key, other: "wrong"}, 200),
            ({good: "Bearer wrong", other: "ads"}, 401),
            ({other: "ads"}, 200),
        ):
            answer = await exchange(served.port, request("POST", path, ask("v/two"), headers))
            assert answer.status == status, headers


# Windows -------------------------------------------------------------------------------------------------------------


@BOTH
async def test_62_a_prompt_beyond_the_window_is_an_error_and_asked_once(served: Rig, stream: bool) -> None:
    message = "This model's maximum context length is 128000 tokens. However, your messages resulted in 150008 tokens."
    served.vendor.default = error(400, message, code="context_length_exceeded", param="messages")
    answer = await served.post(OPENAI, ask("openai/gpt-4o", max_tokens=50, stream=stream, **TRUNCATE))
    assert (answer.status, answer.code, answer.error()["param"]) == (400, "context_length_exceeded", "prompt")
    assert len(calls(served)) == 1


def crowded(window: int, prompt: int) -> Callable[[Received], Script]:
    """Respond as vLLM 0.18 to 0.31: the prompt tokens in the error are the window minus the limit, not a
    measurement.
    """

    def answer(received: Received) -> Script:
        limit = sent(received)["max_tokens"]
        assert isinstance(limit, int)
        if prompt + limit <= window:
            return streamed("x") if sent(received).get("stream") else whole(choice("x"))
        message = (
            f"This model's maximum context length is {window} tokens. However, you requested {limit} output tokens and "
            f"your prompt contains at least {window + 1 - limit} input tokens, for a total of at least {window + 1} "
            "tokens."
        )
        return error(400, message)

    return answer


@BOTH
@pytest.mark.parametrize(("prompt", "limits"), [(5000, [8000, 4000, 2000]), (7999, [8000, 4000, 2000])])
async def test_63_a_derived_count_halves_the_limit(served: Rig, stream: bool, prompt: int, limits: list[int]) -> None:
    served.vendor.default = crowded(8192, prompt)
    answer = await served.post(OPENAI, ask("both/m", max_tokens=8000, stream=stream, **TRUNCATE))
    assert [body["max_tokens"] for body in calls(served)] == limits
    if prompt == 5000:
        assert (texts(answer), answer.headers["x-dragoman-max-tokens"]) == ({0: "x"}, "2000")
        assert emulated(answer) == "context_length_exceeded_behavior"
    else:
        assert (answer.status, answer.code) == (400, "context_length_exceeded")


@BOTH
async def test_64_each_prompt_of_a_batch_gets_what_its_window_leaves(served: Rig, stream: bool) -> None:
    message = (
        "This model's maximum context length is 4097 tokens, however you requested {total} tokens ({prompt} in your "
        "prompt; {limit} for the completion). Please reduce your prompt; or completion length."
    )

    def answer(received: Received) -> Script:
        body = sent(received)
        limit, prompt = body["max_tokens"], len(str(body["prompt"]))
        assert isinstance(limit, int)
        if prompt + limit > 4097:
            return error(400, message.format(total=prompt + limit, prompt=prompt, limit=limit))
        return either(lambda _: f"{limit}")(received)

    served.vendor.default = answer
    prompts: list[JsonValue] = ["a" * 3000, "b" * 10, "c" * 4000]
    asked: JsonObject = {"prompt": prompts, "max_tokens": 2000, "stream": stream}
    served_all = await served.post(OPENAI, ask("openai/gpt-3.5-turbo-instruct", **asked, **TRUNCATE))
    assert texts(served_all) == {0: "1097", 1: "2000", 2: "97"}
    assert emulated(served_all) == "prompt, context_length_exceeded_behavior"
    # A stream's headers are sent with the first content, before the limits of all prompts are known.
    assert stream or served_all.headers["x-dragoman-max-tokens"] == "97"
    asked["prompt"] = ["d" * 5000]
    refused = await served.post(OPENAI, ask("openai/gpt-3.5-turbo-instruct", **asked))
    assert (refused.status, refused.code) == (400, "context_length_exceeded")


@pytest.mark.parametrize("path", PATHS)
async def test_65_fireworks_is_always_told_what_to_do_at_the_window(served: Rig, path: str) -> None:
    served.vendor.default = whole(choice("x"))
    given: JsonObject
    for given in ({}, ERROR, TRUNCATE):
        await served.post(path, ask("fireworks/m", **given))
    default = "truncate" if path == FIREWORKS else "error"
    told = [body["context_length_exceeded_behavior"] for body in calls(served)]
    assert told == [default, "error", "truncate"]


# Controls ------------------------------------------------------------------------------------------------------------

NO_SECONDS: list[JsonValue] = ["2m", 0, -1, "abc", "0", "-1", "1e999", True, []]
REFUSED: dict[str, tuple[JsonObject, str]] = {
    "70": ({"inference_extra_params": {"stream": True}}, "inference_extra_params.stream"),
    "71": ({"inference_extra_headers": {"Authorization": "x"}}, "inference_extra_headers.Authorization"),
    **{f"72 {value!r}": ({"inference_timeout": value}, "inference_timeout") for value in NO_SECONDS},
    "75": ({"seed": 2.0**64}, "seed"),
}


@looped("path", [*PATHS, CHAT])
@looped("case", REFUSED)
async def test_70_to_72_what_a_client_may_not_control_reaches_no_vendor(served: Rig, path: str, case: str) -> None:
    fields, param = REFUSED[case]
    body = ask("both/m", **fields)
    if path == CHAT:
        body = {**body, "messages": [{"role": "user", "content": "hi"}]}
        del body["prompt"]
    refused = await served.post(path, body)
    assert refused.status == (422 if path in (PAIS, SCALE_V4, SCALE_V5) else 400)
    assert (refused.code, refused.error()["param"]) == ("invalid_value", param)
    assert calls(served) == []


@pytest.mark.parametrize("value", [30, "30", 0.5, "1.5"])
async def test_72_seconds_are_taken_as_a_number_or_its_digits_and_not_passed_on(served: Rig, value: JsonValue) -> None:
    served.vendor.default = whole(choice("x"))
    assert (await served.post(SCALE_V4, ask("both/m", inference_timeout=value))).status == 200
    assert calls(served)[0].keys() == {"model", "prompt"}


@pytest.mark.parametrize("path", [*PATHS, CHAT])
async def test_73_line_separators_in_a_stream_are_escaped(served: Rig, path: str) -> None:
    said = "a\u2028b\u2029c\x85d"
    body = ask("both/m", stream=True)
    if path == CHAT:
        body = {"model": "both/m", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
        served.vendor.answer(json_answer(200, {"choices": [{**_choice(said), "finish_reason": "stop"}]}))
    else:
        served.vendor.answer(streamed(said))
    answer = await served.post(path, body)
    assert b"a\\u2028b\\u2029c\\u0085d" in answer.body
    assert answer.body.isascii()


def _choice(text: str) -> JsonObject:
    return {"index": 0, "message": {"role": "assistant", "content": text}}
