"""Second attempts over sockets: whose stream the client reads, and that the other attempt's connection is closed."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from providers.json_types import JsonObject, JsonValue
from tests.proxy.kit.gateway_rig import AUTH, CLIENT_KEY, OPERATOR_KEY, Rig, rig
from tests.proxy.kit.raw_client import Answer, exchange, request
from tests.proxy.kit.tables import digest_of
from tests.support.http_scripts import json_answer, sse_answer
from tests.support.openai_wire import USAGE, chat, chat_frames
from tests.support.vendor_script import Hang, Received, Script, Until

pytestmark = pytest.mark.smoke

DEPLOYMENTS = "deployments: {eu: {upstream_model: eu}, us: {upstream_model: us}}"
POOR = "{upstream_model: us, budget: {usd: 0.01, per: hour}}"
"""A deployment whose budget two tokens use up."""
LIMITED = "deployments: {eu: {upstream_model: eu}, us: {upstream_model: us, limits:"
TABLE = f"""
defaults: {{hedge: {{after: 40ms, share: 1, burst: 1000}}}}
vendors:
  v:
    profile: openai_compatible
    api_key: {OPERATOR_KEY}
    base_url: "http://127.0.0.1:PORT/v1"
    allow_private: true
models:
  v/m: {{{DEPLOYMENTS}, price: {{input: 1, output: 1}}}}
  v/off: {{{DEPLOYMENTS}, hedge: off}}
  v/narrow: {{{LIMITED} {{concurrent: 1}}}}}}}}
  v/seldom: {{{LIMITED} {{requests_per_minute: 1}}}}}}}}
  v/spare: {{deployments: {{eu: {{upstream_model: eu}}, us: {{upstream_model: us}}, home: {{upstream_model: home}}}}}}
  v/poor: {{price: {{input: 10000, output: 10000}}, deployments: {{eu: {{upstream_model: eu}}, us: {POOR}}}}}
teams:
  search: {{keys: ["{digest_of(CLIENT_KEY)}"], models: ["*"], budget: {{usd: 1000, per: month}}}}
  single: {{keys: ["{digest_of("single")}"], models: ["*"], limits: {{concurrent: 1}}}}
"""
STREAM: dict[str, Script] = {name: sse_answer(chat_frames([f"from {name}"], name)) for name in ("eu", "us", "home")}
WHOLE: dict[str, Script] = {name: json_answer(200, chat(f"from {name}", name)) for name in ("eu", "us", "home")}
HANGS: Script = (Hang(),)


@pytest_asyncio.fixture
async def served() -> AsyncIterator[Rig]:
    async with rig(TABLE) as made:
        yield made


def scripted(made: Rig, **scripts: Script) -> None:
    """Set each deployment's script, by the name of its model."""

    def behave(received: Received) -> Script:
        body = received.json()
        assert isinstance(body, dict)
        return scripts[str(body["model"])]

    made.vendor.default = behave


def body(model: JsonValue = "v/m", **more: JsonValue) -> JsonObject:
    return {"model": model, "messages": [{"role": "user", "content": "Say hi."}], **more}


async def single(made: Rig, *, stream: bool) -> Answer:
    """Send a request of the team with one slot."""
    auth = {"authorization": "Bearer single"}
    return await exchange(made.port, request("POST", "/v1/chat/completions", body(stream=stream), auth))


async def ask(made: Rig, *, stream: bool, **more: JsonValue) -> Answer:
    return await made.post("/v1/chat/completions", body(stream=stream, **more))


def calls(made: Rig) -> list[str]:
    """Return the models that were called."""
    return [str(each["model"]) for received in made.vendor.requests if isinstance(each := received.json(), dict)]


async def connection_closed(made: Rig, name: str) -> None:
    """Wait until the connection of a deployment's call is closed."""
    await asyncio.wait_for(made.vendor.requests[calls(made).index(name)].gone.wait(), 10)


@pytest.mark.parametrize("stream", [True, False])
async def test_the_second_answers_and_the_first_is_closed(stream: bool) -> None:
    async with rig(TABLE) as made:
        scripted(made, eu=HANGS, us=(STREAM if stream else WHOLE)["us"])
        answer = await ask(made, stream=stream)
        assert answer.status == 200
        assert b"from us" in answer.body
        assert b"eu" not in answer.body
        assert (b"data: [DONE]" in answer.body) == stream
        assert answer.headers["x-dragoman-deployment"] == "v/m/us"
        assert answer.headers["x-dragoman-attempts"] == "2"
        await connection_closed(made, "eu")
        (record,) = await made.finished(1)
        assert (record.hedge, record.outcome) == ("won", "ok")
        assert [(each.outcome, each.hedge) for each in record.attempts] == [("superseded", False), ("ok", True)]
        assert made.series("hedges_total")["hedges_total outcome=won"] == 1.0
        assert made.series("attempts_total") == {
            "attempts_total deployment=v/m/eu outcome=superseded": 1.0,
            "attempts_total deployment=v/m/us outcome=ok": 1.0,
        }


@pytest.mark.parametrize("stream", [True, False])
async def test_the_first_answers_after_all_and_the_second_is_closed(stream: bool) -> None:
    async with rig(TABLE) as made:
        late = asyncio.Event()
        scripted(made, eu=(Until(late), *(STREAM if stream else WHOLE)["eu"]), us=HANGS)
        asking = asyncio.gather(ask(made, stream=stream), made.vendor.received(2))
        await made.vendor.received(2)
        late.set()
        answer, _ = await asking
        assert b"from eu" in answer.body
        assert answer.headers["x-dragoman-deployment"] == "v/m/eu"
        await connection_closed(made, "us")
        (record,) = await made.finished(1)
        assert (record.hedge, record.deployment) == ("lost", "v/m/eu")


async def test_the_books_have_both_prompts_and_the_answer(served: Rig) -> None:
    scripted(served, eu=HANGS, us=STREAM["us"])
    await ask(served, stream=True)
    (record,) = await served.finished(1)
    record.bill_unanswered()
    usage = record.counted
    assert usage is not None
    assert usage.completion_tokens == USAGE["completion_tokens"]
    estimated = usage.prompt_tokens - int(str(USAGE["prompt_tokens"]))
    assert estimated > 0
    assert record.cost == pytest.approx((usage.prompt_tokens + usage.completion_tokens) / 1_000_000)
    assert usage.estimated


@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_leaves_while_both_run_closes_both(stream: bool) -> None:
    async with rig(TABLE) as made:
        scripted(made, eu=HANGS, us=HANGS)
        reader, writer = await asyncio.open_connection("127.0.0.1", made.port)
        writer.write(request("POST", "/v1/chat/completions", body(stream=stream), AUTH))
        await made.vendor.received(2)
        writer.close()
        await connection_closed(made, "eu")
        await connection_closed(made, "us")
        (record,) = await made.finished(1)
        assert (record.hedge, record.outcome) == ("cancelled", "client_gone")
        assert len(made.dispatcher.hedges.tasks) == 0
        assert await reader.read() == b""


async def test_both_fail_and_the_next_target_answers(served: Rig) -> None:
    failing = asyncio.Event()
    refusal = (Until(failing), *json_answer(500, {"error": {"message": "broken"}}))
    scripted(served, eu=refusal, us=refusal, home=STREAM["home"])
    asking = asyncio.gather(ask(served, stream=True, model="v/spare"), served.vendor.received(2))
    await served.vendor.received(2)
    failing.set()
    answer, _ = await asking
    assert b"from home" in answer.body
    assert answer.headers["x-dragoman-attempts"] == "3"
    (record,) = await served.finished(1)
    assert record.hedge == "failed"
    assert {each.deployment for each in record.attempts} == {"v/spare/eu", "v/spare/us", "v/spare/home"}


@pytest.mark.parametrize(
    ("model", "expected"), [("v/narrow", ["lost", "lost"]), ("v/seldom", ["lost", "refused_busy"])]
)
async def test_a_second_attempt_is_held_to_the_limits_of_its_deployment(
    served: Rig, model: str, expected: list[str]
) -> None:
    found: list[str | None] = []
    for outcome in expected:
        late = asyncio.Event()
        scripted(served, eu=(Until(late), *STREAM["eu"]), us=HANGS)
        before = len(served.vendor.requests)
        asking = asyncio.ensure_future(ask(served, stream=True, model=model))
        await served.vendor.received(before + (2 if outcome == "lost" else 1))
        await asyncio.sleep(0.1)  # the hedge timer fires after 40 ms
        late.set()
        assert b"from eu" in (await asking).body
        found.append((await served.finished(len(found) + 1))[-1].hedge)
    assert found == expected
    (us,) = [target for target in served.live.snapshot.models[model].targets if target.deployment == "us"]
    assert served.dispatcher.deployments.queue(us).in_flight == 0


async def test_a_deployment_without_room_in_its_budget_gets_no_second_attempt(served: Rig) -> None:
    late = asyncio.Event()
    scripted(served, eu=(Until(late), *STREAM["eu"]), us=STREAM["us"])
    assert b"from us" in (await ask(served, stream=True, model="v/poor/us")).body
    asking = asyncio.ensure_future(ask(served, stream=True, model="v/poor"))
    await served.vendor.received(2)
    await asyncio.sleep(0.1)  # the hedge timer fires after 40 ms
    late.set()
    assert b"from eu" in (await asking).body
    _, record = await served.finished(2)
    assert (record.hedge, calls(served)) == ("refused_busy", ["us", "eu"])


@pytest.mark.parametrize("stream", [True, False])
async def test_a_team_with_one_request_at_once_has_second_attempts_and_its_slot_back(
    served: Rig, *, stream: bool
) -> None:
    scripted(served, eu=HANGS, us=STREAM["us"] if stream else WHOLE["us"])
    for number in range(1, 4):
        answer = await single(served, stream=stream)
        assert (answer.status, b"from us" in answer.body) == (200, True)
        record = (await served.finished(number))[-1]
        assert (record.team, record.hedge) == ("single", "won")


@pytest.mark.parametrize(
    ("path", "more", "count"),
    [
        ("/v1/chat/completions", {}, 2),
        ("/v1/chat/completions", {"model": "v/off"}, 1),
        ("/v1/chat/completions", {"model": "v/m/eu"}, 1),
        ("/v1/responses", {"input": "Say hi."}, 1),
        ("/v1/responses", {"input": "Say hi.", "store": False}, 2),
    ],
)
async def test_what_must_not_be_sent_twice_is_sent_once(path: str, more: JsonObject, count: int) -> None:
    async with rig(TABLE) as made:
        late = asyncio.Event()
        scripted(made, eu=(Until(late), *WHOLE["eu"]), us=(Until(late), *WHOLE["us"]))
        sent = {**body(), **more}
        if path != "/v1/chat/completions":
            del sent["messages"]
        asking = asyncio.ensure_future(made.post(path, sent))
        await made.vendor.received(count)
        await asyncio.sleep(0.1)  # the hedge timer fires after 40 ms
        assert len(made.vendor.requests) == count
        late.set()
        await asking
        (record,) = await made.finished(1)
        assert (record.hedge is None) == (count == 1)
