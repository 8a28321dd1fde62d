"""The public listener over real sockets: access, paths, and the headers of every response."""

from collections.abc import Sequence

import pytest

from proxy.process.request_observer import LINE_WRITERS
from proxy.request_record import request_id
from tests.proxy.kit.gateway_rig import AUTH, CLIENT_KEY, MAX_BODY, OPERATOR_KEY, Rig, ask
from tests.proxy.kit.raw_client import connected, exchange, request
from tests.support.http_scripts import json_answer, sse_answer
from tests.support.looped import looped
from tests.support.openai_wire import USAGE, completion, completion_frames

OK = json_answer(200, completion("hello", "m"))
PATHS = ("/v1/completions", "/v4/beta/completions", "/v5/completions", "/inference/v1/completions")
PAIS = "/api/v1/compatibility/openai/v1/completions"


# Responses -----------------------------------------------------------------------------------------------------------


@pytest.mark.smoke
async def test_a_completion_comes_back_in_the_common_shape(served: Rig) -> None:
    answer = await served.post("/v1/completions", ask())
    body = answer.json()
    assert answer.status == 200
    assert body["model"] == "v/m"
    assert body["object"] == "text_completion"
    assert body["usage"] == USAGE
    assert isinstance(body["choices"], list)
    assert body["choices"][0] == {"index": 0, "text": "hello", "logprobs": None, "finish_reason": "stop"}


@pytest.mark.smoke
async def test_an_answer_says_who_answered_and_lets_nobody_keep_it(served: Rig) -> None:
    headers = (await served.post("/v1/completions", ask())).headers
    assert headers["x-dragoman-deployment"] == "v/m/default"
    assert headers["x-dragoman-attempts"] == "1"
    assert headers["content-type"] == "application/json"
    assert headers["server"] == "dragoman"
    assert headers["cache-control"] == "no-store"
    assert "x-dragoman-emulated" not in headers
    assert "connection" not in headers


async def test_a_stream_comes_back_frame_by_frame_and_says_that_it_is_one(served: Rig) -> None:
    served.vendor.answer(sse_answer(completion_frames(["he", "llo"])))
    answer = await served.post("/v1/completions", ask(stream=True))
    assert (answer.status, answer.whole) == (200, True)
    assert b'"text":"he"' in answer.events()[0]
    assert answer.events()[-1] == b"[DONE]"
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["x-accel-buffering"] == "no"
    assert answer.headers["x-dragoman-deployment"] == "v/m/default"
    assert answer.headers["server"] == "dragoman"


async def test_the_vendor_is_asked_in_its_own_words_with_the_operator_s_key(served: Rig) -> None:
    await served.post("/v1/chat/completions", {"model": "v/m", "messages": [{"role": "user", "content": "hi"}]})
    (sent,) = served.vendor.requests
    assert (sent.path, sent.model) == ("/v1/chat/completions", "m")
    assert sent.header("authorization") == f"Bearer {OPERATOR_KEY}"
    assert CLIENT_KEY not in str(sent.headers)


async def test_after_a_route_the_answer_names_the_model_that_served(served: Rig) -> None:
    answer = await served.post("/v1/completions", ask("fast"))
    assert answer.json()["model"] == "v/m"


async def test_a_connection_serves_one_request_after_the_other(served: Rig) -> None:
    async with connected(served.port) as client:
        for number in range(4):
            if number % 2:
                served.vendor.answer(sse_answer(completion_frames(["x"])))
            await client.send(request("POST", "/v1/completions", ask(stream=bool(number % 2)), AUTH))
            answer = await client.answer()
            assert (answer.status, answer.whole) == (200, True)
    assert served.vendor.connections == 1


async def test_a_client_of_the_first_http_version_gets_its_stream_too(served: Rig) -> None:
    served.vendor.answer(sse_answer(completion_frames(["x"])))
    data = request("POST", "/v1/completions", ask(stream=True), AUTH).replace(b"HTTP/1.1", b"HTTP/1.0")
    answer = await exchange(served.port, data)
    assert answer.status == 200
    assert answer.events()[-1] == b"[DONE]"


# Request ids ---------------------------------------------------------------------------------------------------------


async def test_a_client_s_id_is_echoed_logged_and_sent_on(served: Rig) -> None:
    answer = await served.post("/v1/completions", ask(), {"X-Request-Id": "trace-1"})
    assert answer.headers["x-request-id"] == "trace-1"
    assert (await served.finished(1))[0].request_id == "trace-1"
    assert served.vendor.requests[0].header("x-request-id") == "trace-1"


@pytest.mark.parametrize("given", ["a b", "x" * 129, "<script>"])
async def test_an_id_that_is_none_is_replaced(served: Rig, given: str) -> None:
    made = (await served.post("/v1/completions", ask(), {"X-Request-Id": given})).headers["x-request-id"]
    assert made != given
    assert request_id({"x-request-id": made}) == made


# Refusals ------------------------------------------------------------------------------------------------------------


async def test_every_refusal_carries_an_envelope_an_id_and_our_name(served: Rig) -> None:
    sent = {
        401: request("POST", "/v1/completions", ask()),
        403: request("POST", "/v1/completions", ask("v/two"), AUTH),
        404: request("POST", "/v1/completions", ask("v/unknown"), AUTH),
        405: request("DELETE", "/v1/completions", None, AUTH),
        413: request("POST", "/v1/completions", b"x" * (MAX_BODY + 1), AUTH),
        400: request("POST", "/v1/completions", b"{", AUTH),
    }
    for status, data in sent.items():
        answer = await exchange(served.port, data)
        assert answer.status == status
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["server"] == "dragoman"
        assert answer.headers["x-request-id"]
        assert answer.message
    assert served.vendor.requests == []


async def test_a_wrong_key_is_a_401_that_no_client_repeats(served: Rig) -> None:
    answer = await served.post("/v1/completions", ask(), {"Authorization": "Bearer wrong"})
    assert (answer.status, answer.code) == (401, "invalid_api_key")
    assert answer.headers["x-should-retry"] == "false"
    assert (await served.finished(1))[0].outcome == "denied"


async def test_a_key_is_taken_from_any_of_the_headers(served: Rig) -> None:
    for headers in ({"x-api-key": CLIENT_KEY}, {"api-key": CLIENT_KEY}, {"authorization": CLIENT_KEY}):
        answer = await exchange(served.port, request("POST", "/v5/completions", ask(), headers))
        assert answer.status == 200


async def test_a_foreign_model_is_a_403_and_an_unknown_one_a_404_with_the_nearest(served: Rig) -> None:
    foreign = await served.post("/v1/completions", ask("v/two"))
    assert (foreign.status, foreign.code) == (403, "model_not_allowed")
    unknown = await served.post("/v1/completions", ask("v/mm"))
    assert (unknown.status, unknown.code) == (404, "model_not_found")
    assert "'v/m'" in unknown.message
    assert [record.outcome for record in await served.finished(2)] == ["denied", "client_error"]


async def test_another_method_is_a_405_with_the_right_one_and_an_offer_of_websocket_a_426(served: Rig) -> None:
    for method in ("GET", "PUT", "OPTIONS", "TRACE"):
        answer = await exchange(served.port, request(method, "/v1/completions", None, AUTH))
        assert (answer.status, answer.headers["allow"]) == (405, "POST")
    offer = {**AUTH, "Connection": "Upgrade", "Upgrade": "websocket"}
    answer = await exchange(served.port, request("GET", "/v1/completions", None, offer))
    assert (answer.status, answer.code, answer.headers["upgrade"]) == (426, "upgrade_required", "HTTP/1.1")
    assert (await exchange(served.port, request("GET", "/v1/nothing", None, offer))).status == 404


async def test_a_body_too_large_is_refused_by_its_length_before_it_comes(served: Rig) -> None:
    async with connected(served.port) as client:
        await client.send(
            request("POST", "/v1/completions", None, {**AUTH, "Expect": "100-continue"}).replace(
                b"Content-Length: 0", b"Content-Length: %d" % (MAX_BODY + 1)
            )
        )
        answer = await client.answer()
    assert (answer.status, answer.code) == (413, "request_too_large")


@pytest.mark.parametrize("path", PATHS)
async def test_a_field_that_is_wrong_is_named_with_the_surface_s_status(served: Rig, path: str) -> None:
    answer = await served.post(path, ask(temperature="hot"))
    assert answer.status == (422 if path[:3] in ("/v4", "/v5") else 400)
    assert answer.error()["param"] == "temperature"
    assert ("detail" in answer.json()) is (answer.status == 422)
    assert ("object" in answer.error()) is path.startswith("/inference")


async def test_a_field_that_no_deployment_honours_is_refused_before_anything_is_sent(served: Rig) -> None:
    answer = await served.post("/v1/completions", ask(guided_regex="a+"))
    assert (answer.status, answer.code) == (400, "unsupported_parameter")
    assert "v/m/default" in answer.message
    assert served.vendor.requests == []


ODD_TARGETS: Sequence[bytes] = (
    b"/v1/%zz",
    b"/v1/\xff\xfe",
    b"/v1/%ff",
    b"/v1/models/%00",
    b"/v1/models/\xc3\x28",
    b"/%2e%2e/%2e%2e/etc/passwd",
    b"/../../etc/passwd",
    b"/v1/completions?a=\xff",
    b"http://elsewhere.example.com/v1/models/x",
    b"//elsewhere.example.com/v1",
    b"*",
    b"/" + b"a/" * 2000,
    b"/v1/models/" + b"a" * 3000,
)


@looped("target", ODD_TARGETS)
@looped("method", [b"GET", b"POST", b"OPTIONS", b"CONNECT"])
async def test_an_odd_target_is_a_client_error(served: Rig, target: bytes, method: bytes) -> None:
    data = b"%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n" % (
        method,
        target,
        CLIENT_KEY.encode(),
    )
    answer = await exchange(served.port, data)
    assert 400 <= answer.status < 500
    assert answer.headers["x-request-id"]
    assert answer.message


# Health and models ---------------------------------------------------------------------------------------------------


async def test_health_needs_no_key_and_tells_readiness(served: Rig) -> None:
    for path in ("/health", "/health/live", "/health/ready"):
        assert (await served.get(path, {})).status == 200
    served.gateway.ready = False
    assert (await served.get("/health/live", {})).status == 200
    answer = await served.get("/health/ready", {})
    assert (answer.status, answer.json()) == (503, {"status": "unavailable"})
    assert served.records == []


async def names(served: Rig, path: str, key: str) -> list[str]:
    data = (await served.get(path, {"Authorization": key})).json()["data"]
    assert isinstance(data, list)
    return [str(card["id"]) for card in data if isinstance(card, dict)]


async def test_a_team_is_shown_what_it_may_ask_for(served: Rig) -> None:
    assert await names(served, "/v1/models", CLIENT_KEY) == ["fast", "v/m", "v/hasty", "v/short", "v/two/eu"]
    assert await names(served, "/models", "ads") == ["v/two", "v/two/eu", "v/two/us"]
    assert (await served.get("/v1/models", {})).status == 401


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/v1/models/v/m", "v/m"),
        ("/v1/models/v%2Fm", "v/m"),
        ("/v1/models/v%2fm", "v/m"),
        ("/v1//models//v//m", "v/m"),
        ("/models/v/two/eu", "v/two/eu"),
        ("/v1/models/local/any/name%3A8b", "local/any/name:8b"),
        ("/v1/models/fast", "fast"),
    ],
)
async def test_one_model_is_found_by_its_name_with_slashes_raw_or_encoded(served: Rig, path: str, name: str) -> None:
    answer = await served.get(path)
    assert answer.status == 200
    assert answer.json()["id"] == name


async def test_a_card_tells_owner_age_and_the_smallest_window(served: Rig) -> None:
    card = (await served.get("/v1/models/v/two", {"Authorization": "ads"})).json()
    assert card == {
        "id": "v/two",
        "object": "model",
        "created": 1_795_000_000,
        "owned_by": "v",
        "root": "v/two",
        "max_model_len": 2048,
        "context_length": 2048,
        "top_provider": {"context_length": 2048, "max_completion_tokens": None},
    }
    assert "max_model_len" not in (await served.get("/v1/models/fast")).json()
    assert (await served.get("/v1/models/fast")).json()["owned_by"] == "dragoman"


@pytest.mark.parametrize(("name", "status"), [("v/nothing", 404), ("v/two/us", 403), ("*", 404), ("v/*", 404)])
async def test_a_model_that_may_not_be_asked_for_is_not_shown(served: Rig, name: str, status: int) -> None:
    assert (await served.get(f"/v1/models/{name}")).status == status


@pytest.mark.parametrize("path", ["//v1//completions", "/v1/completions/", "///completions"])
async def test_slashes_too_many_do_not_matter(served: Rig, path: str) -> None:
    assert (await served.post(path, ask())).status == 200


async def test_being_told_to_wait_by_every_vendor_is_no_error_of_the_client_s(served: Rig) -> None:
    served.vendor.default = json_answer(429, {"error": {"message": "slow down"}}, [("retry-after", "30")])
    for _ in range(2):
        assert (await served.post("/v1/completions", ask())).status == 429
    told, refused = await served.finished(2)
    # The second request was not sent.
    assert (len(told.attempts), len(refused.attempts), len(served.vendor.requests)) == (1, 0, 1)
    assert (told.outcome, refused.outcome) == ("upstream_error", "upstream_error")


# The record of a request --------------------------------------------------------------------------------------------


async def test_a_record_tells_who_asked_what_and_who_answered(served: Rig) -> None:
    answer = await served.post("/v1/completions", ask("local/some/model"))
    assert answer.headers["x-dragoman-deployment"] == "local/some/model/default"
    (record,) = await served.finished(1)
    assert (record.team, record.surface, record.path) == ("search", "openai", "/v1/completions")
    assert (record.asked, record.model, record.deployment) == ("local/some/model", "local/*", "local/*/default")
    assert record.answered_by == "local/some/model/default"
    assert (record.status, record.outcome, record.stream, record.client) == (200, "ok", False, "127.0.0.1")
    assert record.usage is not None
    assert record.usage.total_tokens == 8
    assert 0 <= record.waited <= record.duration


async def test_a_surface_looks_into_its_own_header_first(served: Rig) -> None:
    headers = {"Authorization": "Bearer wrong", "x-api-key": CLIENT_KEY}
    assert (await exchange(served.port, request("POST", "/v5/completions", ask(), headers))).status == 200
    assert (await exchange(served.port, request("POST", "/v1/completions", ask(), headers))).status == 401


async def test_no_name_of_a_client_becomes_a_label(served: Rig) -> None:
    await served.post("/v1/completions", ask("local/made/up"))
    await served.post("/v1/completions", ask("made-up"))
    await served.post("/v1/completions", ask("fast"))
    await exchange(served.port, request("GET", "/made-up"))
    await served.finished(4)
    text = served.metrics.render().decode()
    assert "made" not in text
    assert served.series("requests_total") == {
        "requests_total code=200 model=local/* outcome=ok stream=false surface=openai team=search": 1,
        "requests_total code=404 model=other outcome=client_error stream=false surface=openai team=search": 1,
        "requests_total code=200 model=fast outcome=ok stream=false surface=openai team=search": 1,
        "requests_total code=404 model=other outcome=client_error stream=false surface=openai team=unknown": 1,
    }


PROMPT = "canary-of-the-prompt"


@pytest.mark.parametrize("form", sorted(LINE_WRITERS))
@pytest.mark.parametrize("case", ["good", "vendor error", "bad field", "bad json", "no such model", "bad key"])
async def test_no_line_of_the_log_holds_a_prompt_or_a_key(
    served: Rig, form: str, case: str, caplog: pytest.LogCaptureFixture
) -> None:
    body: object = ask(prompt=PROMPT, **({"temperature": PROMPT} if case == "bad field" else {}))
    if case == "vendor error":
        served.vendor.default = json_answer(400, {"error": {"message": f"key {OPERATOR_KEY} is bad"}})
    if case == "no such model":
        body = ask("v/nothing", prompt=PROMPT)
    if case == "bad json":
        body = b'{"prompt": "%s"' % PROMPT.encode()
    headers = {"Authorization": "Bearer bad-canary"} if case == "bad key" else {}
    answer = await served.post("/v1/completions", body, headers)  # type: ignore[arg-type]  # either kind of body
    (record,) = await served.finished(1)
    line = LINE_WRITERS[form](record, record.cost).decode()
    assert "canary" not in line + caplog.text
    assert "canary" not in str(answer.body) or case == "good"
    assert (answer.status == 200) is (case == "good")
