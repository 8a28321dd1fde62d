"""Conversations continued by id, through the gateway: the vendor's requests, the teams that may continue, and the
errors.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import orjson
import pytest
import pytest_asyncio

from providers.json_types import JsonObject, JsonValue
from proxy.overload.admission_limits import AdmissionLimits
from proxy.process.assemble_app import WholeGateway
from tests.proxy.kit.gateway_rig import AUTH, Rig, rig
from tests.proxy.kit.raw_client import Answer, exchange, request
from tests.proxy.kit.whole_gateway import port_of, table_before, up
from tests.support.http_scripts import json_answer, sse_answer, sse_unterminated
from tests.support.openai_wire import chat, chat_frames
from tests.support.redis import fake_redis, frozen, real_redis
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Fin, Until

OTHER_TEAM = {"Authorization": "Bearer ads"}


@pytest_asyncio.fixture
async def served() -> AsyncIterator[Rig]:
    async with rig() as made:
        made.vendor.default = json_answer(200, chat("Hi."))
        yield made


def request_body(text: JsonValue, previous: object = None, model: str = "v/m") -> JsonObject:
    more: JsonObject = {"previous_response_id": previous} if isinstance(previous, str) else {}
    return {"model": model, "input": text, **more}


def json_of(answer: Answer, status: int = 200) -> JsonObject:
    assert answer.status == status, answer.body
    value = orjson.loads(answer.body)
    assert isinstance(value, dict)
    return value


def error(answer: Answer, status: int) -> JsonObject:
    found = json_of(answer, status)["error"]
    assert isinstance(found, dict)
    return found


def events(answer: Answer) -> list[JsonObject]:
    assert answer.status == 200, answer.body
    return [orjson.loads(line[6:]) for line in answer.body.split(b"\n") if line.startswith(b"data: {")]


def final(answer: Answer) -> JsonObject:
    response = events(answer)[-1]["response"]
    assert isinstance(response, dict)
    return response


def said_to(vendor: FakeVendor) -> list[tuple[object, object]]:
    """Return the roles and texts of the messages in the vendor's last request."""
    body = vendor.requests[-1].json()
    assert isinstance(body, dict)
    messages = body["messages"]
    assert isinstance(messages, list)
    return [(each["role"], each["content"]) for each in messages if isinstance(each, dict)]


async def ask(made: Rig, text: JsonValue, previous: object = None, **fields: JsonValue) -> Answer:
    return await made.post("/v1/responses", {**request_body(text, previous), **fields})


async def test_a_conversation_goes_on_by_the_id_of_the_last_answer(served: Rig) -> None:
    first = json_of(await ask(served, "one", instructions="Be brief."))
    second = json_of(await ask(served, "two", first["id"]))
    json_of(await ask(served, "three", second["id"]))
    assert said_to(served.vendor) == [
        ("user", "one"),
        ("assistant", "Hi."),
        ("user", "two"),
        ("assistant", "Hi."),
        ("user", "three"),
    ]


async def test_an_answer_may_be_gone_on_from_more_than_once(served: Rig) -> None:
    first = json_of(await ask(served, "one"))
    for text in ("left", "right"):
        json_of(await ask(served, text, first["id"]))
        assert said_to(served.vendor)[-1] == ("user", text)
        assert len(said_to(served.vendor)) == 3


async def test_a_streamed_answer_is_stored_as_the_client_saw_it(served: Rig) -> None:
    served.vendor.default = sse_answer(chat_frames(["Hel", "lo."]))
    response = final(await ask(served, "one", stream=True))
    kept = json_of(await served.get(f"/v1/responses/{response['id']}"))
    assert kept == response
    read_on = await ask(served, "two", response["id"], stream=True)
    assert final(read_on)["previous_response_id"] == response["id"]
    assert said_to(served.vendor) == [("user", "one"), ("assistant", "Hello."), ("user", "two")]


async def test_a_stream_that_broke_is_not_stored(served: Rig) -> None:
    served.vendor.default = sse_unterminated(chat_frames(["Hel", "lo."])[:2], Fin())
    broken = await ask(served, "one", stream=True)
    (failed,) = [each for each in events(broken) if each["type"] == "response.failed"]
    response = failed["response"]
    assert isinstance(response, dict)
    assert (await served.get(f"/v1/responses/{response['id']}")).status == 404
    assert len(served.features.responses.entries.kept) == 0


async def test_what_the_client_does_not_want_stored_is_not_nor_is_a_request_of_another_surface(served: Rig) -> None:
    response = json_of(await ask(served, "one", store=False))
    assert response["store"] is False
    assert (await served.get(f"/v1/responses/{response['id']}")).status == 404
    assert len(served.features.responses.entries.kept) == 0
    body: JsonObject = {"model": "v/m", "messages": [{"role": "user", "content": "previous_response_id"}]}
    json_of(await served.post("/v1/chat/completions", body))
    assert len(served.features.responses.entries.kept) == 0


async def test_an_item_is_found_by_its_id_whether_it_was_said_or_answered(served: Rig) -> None:
    first = json_of(await ask(served, [{"id": "msg_mine", "role": "user", "content": "one"}]))
    output = first["output"]
    assert isinstance(output, list)
    assert isinstance(output[0], dict)
    refer: JsonValue = [
        {"type": "item_reference", "id": "msg_mine"},
        {"type": "item_reference", "id": output[0]["id"]},
        {"role": "user", "content": "two"},
    ]
    json_of(await ask(served, refer))
    assert said_to(served.vendor) == [("user", "one"), ("assistant", "Hi."), ("user", "two")]
    elsewhere = await served.post("/v1/responses", request_body(refer, model="v/two"), OTHER_TEAM)
    assert elsewhere.status in (400, 404)


async def test_another_team_cannot_go_on_from_an_answer(served: Rig) -> None:
    first = json_of(await ask(served, "one"))
    answer = await served.post("/v1/responses", request_body("two", first["id"], model="v/two"), OTHER_TEAM)
    found = error(answer, 400)
    assert (found["code"], found["param"]) == ("previous_response_not_found", "previous_response_id")
    assert len(served.vendor.requests) == 1


@pytest.mark.parametrize("previous", ["resp_absent", "", "x" * 5000, "resp_\u00e9", "\U0001f600", "r:x"])
async def test_an_unknown_id_is_refused_by_name(served: Rig, previous: str) -> None:
    found = error(await ask(served, "two", previous), 400)
    assert (found["code"], found["param"]) == ("previous_response_not_found", "previous_response_id")


async def test_the_response_that_a_conversation_has_lost_is_named(served: Rig) -> None:
    first = json_of(await ask(served, "one"))
    second = json_of(await ask(served, "two", first["id"]))
    gone = await exchange(served.port, request("DELETE", f"/v1/responses/{first['id']}", None, AUTH))
    assert json_of(gone)["deleted"] is True
    found = error(await ask(served, "three", second["id"]), 400)
    assert (found["code"], str(first["id"]) in str(found["message"])) == ("previous_response_not_found", True)


async def test_a_response_that_is_too_long_to_be_stored_says_so(served: Rig) -> None:
    kept = served.features.responses.entries.kept
    kept.most = 2000
    answer = await ask(served, "x" * 4000)
    assert json_of(answer)["status"] == "completed"
    assert answer.headers["x-dragoman-dropped"] == "store"
    assert len(kept) == 0


async def test_where_nothing_is_stored_the_answer_says_so_and_nobody_can_go_on(served: Rig) -> None:
    first = json_of(await ask(served, "one"))
    served.features.responses.off = True
    answer = await ask(served, "one")
    assert json_of(answer)["store"] is False
    assert "x-dragoman-dropped" not in answer.headers
    wanted = await ask(served, "one", store=True)
    assert (json_of(wanted)["store"], wanted.headers["x-dragoman-dropped"]) == (False, "store")
    served.vendor.default = sse_answer(chat_frames(["Hi."]))
    assert final(await ask(served, "one", stream=True))["store"] is False
    found = error(await ask(served, "two", first["id"]), 400)
    assert (found["code"], found["param"]) == ("unsupported_parameter", "previous_response_id")
    assert (await served.get(f"/v1/responses/{first['id']}")).status == 404


async def test_a_long_conversation_goes_on_without_holding_others_up(served: Rig) -> None:
    first = json_of(await ask(served, [{"role": "user", "content": "x" * 90_000}]))
    last = first
    for number in range(6):
        last = json_of(await ask(served, [{"role": "user", "content": str(number) * 80_000}], last["id"]))
    assert len(said_to(served.vendor)) == 13


async def test_small_requests_that_continue_much_count_what_they_continue() -> None:
    async with rig(limits=AdmissionLimits(body_bytes=400_000)) as made:
        made.vendor.default = json_answer(200, chat("Hi."))
        last: object = None
        for _ in range(3):
            last = json_of(await ask(made, "x" * 90_000, last))["id"]
        release = asyncio.Event()
        made.vendor.default = (Until(release), *json_answer(200, chat("Hi.")))
        flood = [asyncio.create_task(ask(made, "on", last)) for _ in range(12)]
        done, _ = await asyncio.wait(flood, return_when=asyncio.FIRST_COMPLETED)
        assert {error(each.result(), 503)["code"] for each in done} == {"overloaded"}
        light = asyncio.create_task(made.post("/v1/responses", request_body("hi", model="v/two"), OTHER_TEAM))
        release.set()
        json_of(await light)
        statuses = [(await each).status for each in flood]
        assert set(statuses) == {200, 503}
        assert made.gateway._admission.bodies.total == 0


# Several gateways ----------------------------------------------------------------------------------------------------


async def post(gateway: WholeGateway, body: JsonObject) -> Answer:
    return await exchange(port_of(gateway.url), request("POST", "/v1/responses", body))


async def call(gateway: WholeGateway, method: str, path: str) -> Answer:
    return await exchange(port_of(gateway.url), request(method, f"/v1/responses/{path}", None))


def sharing(vendor: FakeVendor, url: str) -> str:
    return f"{table_before(vendor)}server: {{shared: {{redis: '{url}'}}}}\n"


def folders(root: Path, count: int) -> Sequence[Path]:
    made = [root / f"gateway{number}" for number in range(count)]
    for each in made:
        each.mkdir()
    return made


async def linked(*gateways: WholeGateway) -> None:
    """Wait until the gateways can reach Redis."""
    async with asyncio.timeout(20):
        while not all(each.front.status.status().shared == "up" for each in gateways):  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.02)


async def test_gateways_at_one_redis_go_on_with_each_other_s_conversations(tmp_path: Path) -> None:
    here, there, server = folders(tmp_path, 3)
    with real_redis(server) as redis:
        async with FakeVendor() as vendor:
            vendor.default = json_answer(200, chat("Hi."))
            table = sharing(vendor, redis.url)
            async with up(table, here) as one, up(table, there) as two:
                await linked(one, two)
                last: object = None
                for number in range(6):
                    last = json_of(await post((one, two)[number % 2], request_body(str(number), last)))["id"]
                assert len(said_to(vendor)) == 11
                kept = json_of(await call(two, "GET", str(last)))
                assert kept == json_of(await call(one, "GET", str(last)))
                assert json_of(await call(one, "DELETE", str(last)))["deleted"] is True
                assert (await call(two, "GET", str(last))).status == 404
                found = error(await post(two, request_body("on", last)), 400)
                assert found["code"] == "previous_response_not_found"


async def test_where_redis_is_killed_each_goes_on_with_what_it_has(tmp_path: Path) -> None:
    here, there, server = folders(tmp_path, 3)
    with real_redis(server) as redis:
        async with FakeVendor() as vendor:
            vendor.default = json_answer(200, chat("Hi."))
            table = sharing(vendor, redis.url)
            async with up(table, here) as one, up(table, there) as two:
                await linked(one, two)
                first = json_of(await post(one, request_body("one")))["id"]
                redis.stop()
                second = json_of(await post(one, request_body("two", first)))["id"]
                third = json_of(await post(one, request_body("three", second)))["id"]
                assert len(said_to(vendor)) == 5
                assert (await post(two, request_body("on", third))).status in (400, 503)
                assert (await call(one, "DELETE", str(third))).status == 503
                redis.start()
                await linked(one, two)
                async with asyncio.timeout(20):
                    status = 0
                    while status != 200:
                        again = json_of(await post(one, request_body("again", second)))["id"]
                        status = (await call(two, "GET", str(again))).status
                        assert status in (200, 404, 503)
                        await asyncio.sleep(0.1)


async def test_a_redis_that_never_answers_makes_no_request_fail_and_none_wait_for_long(tmp_path: Path) -> None:
    (here,) = folders(tmp_path, 1)
    async with fake_redis(frozen) as redis, FakeVendor() as vendor:
        vendor.default = json_answer(200, chat("Hi."))
        async with up(sharing(vendor, redis.url), here) as one:
            last: object = None
            async with asyncio.timeout(20):
                for number in range(10):
                    last = json_of(await post(one, request_body(str(number), last)))["id"]
            assert len(said_to(vendor)) == 19


# Conversations that do not fit ---------------------------------------------------------------------------------------

TOO_LONG: JsonObject = {
    "error": {
        "message": "This model's maximum context length is 1000 tokens. However, your messages resulted in 2500 "
        "tokens.",
        "code": "context_length_exceeded",
    }
}


def turns(count: int) -> JsonValue:
    before: list[JsonValue] = [
        {"role": role, "content": f"{role} {number} {'x' * 200}"}
        for number in range(count)
        for role in ("user", "assistant")
    ]
    return [*before, {"role": "user", "content": "now"}]


@pytest.mark.parametrize("stream", [False, True])
async def test_the_oldest_turns_are_left_out_where_the_client_wants_that_and_named(served: Rig, stream: bool) -> None:
    good = sse_answer(chat_frames(["Hi."])) if stream else json_answer(200, chat("Hi."))
    served.vendor.answer(json_answer(400, TOO_LONG), json_answer(400, TOO_LONG), good)
    answer = await ask(served, turns(10), truncation="auto", stream=stream, instructions="Be brief.")
    assert answer.status == 200
    assert answer.headers["x-dragoman-dropped"] == "input"
    assert answer.headers["x-dragoman-attempts"] == "3"
    sizes = [len(orjson.loads(each.body)["messages"]) for each in served.vendor.requests]
    assert sizes[0] == 22
    assert sizes[0] > sizes[1] > sizes[2] > 1
    roles = said_to(served.vendor)
    assert (roles[0], roles[-1]) == (("system", "Be brief."), ("user", "now"))
    assert (await served.finished(1))[-1].outcome == "ok"


async def test_a_conversation_is_shortened_a_few_times_and_no_more(served: Rig) -> None:
    served.vendor.default = json_answer(400, TOO_LONG)
    found = error(await ask(served, turns(170), truncation="auto"), 400)
    assert found["code"] == "context_length_exceeded"
    assert len(served.vendor.requests) == 5


@pytest.mark.parametrize("fields", [{}, {"truncation": "disabled"}, {"truncation": None}])
async def test_otherwise_a_conversation_that_does_not_fit_is_refused(served: Rig, fields: JsonObject) -> None:
    served.vendor.default = json_answer(400, TOO_LONG)
    found = error(await ask(served, turns(10), **fields), 400)
    assert found["code"] == "context_length_exceeded"
    assert len(served.vendor.requests) == 1


async def test_one_turn_that_does_not_fit_is_refused_whatever_the_client_wants(served: Rig) -> None:
    served.vendor.default = json_answer(400, TOO_LONG)
    found = error(await ask(served, "x" * 5000, truncation="auto"), 400)
    assert found["code"] == "context_length_exceeded"
    assert len(served.vendor.requests) == 1
