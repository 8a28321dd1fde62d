"""One team's uploads, waiting requests, texts and constraints load the gateway, and another team is served as if it
were alone."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from providers.json_types import JsonObject, JsonValue
from proxy.background_tasks import Tasks
from proxy.deployment_health.circuit_breaker import State
from proxy.overload.admission_limits import AdmissionLimits
from tests.proxy.kit.gateway_rig import MAX_BODY, Rig, rig
from tests.proxy.kit.raw_client import Answer, RawClient, connected, exchange, request
from tests.proxy.kit.tables import digest_of
from tests.support.http_scripts import body_answer, json_answer
from tests.support.looped import looped
from tests.support.openai_wire import chat
from tests.support.vendor_script import Delay, Hang, Received, Script

LITTLE = AdmissionLimits(body_bytes=100_000)
PATH = "/v1/chat/completions"
OK = json_answer(200, chat("hello"))
VENDORS = "vendors: {v: {profile: PROFILE, base_url: 'http://127.0.0.1:PORT/v1', api_key: k, allow_private: true}}\n"
MODELS = "models: {v/m: {completions: true}}\n"
TEAMS = "teams:\n" + "".join(
    f'  {name}: {{keys: ["{digest_of(name)}"], models: ["*"]}}\n' for name in ("hostile", "honest", "third")
)
TABLE = VENDORS.replace("PROFILE", "openai_compatible") + MODELS + TEAMS


def body(**fields: JsonValue) -> JsonObject:
    return {"model": "v/m", "messages": [{"role": "user", "content": "hi"}], **fields}


async def asks(made: Rig, team: str, **fields: JsonValue) -> Answer:
    return await exchange(made.port, request("POST", PATH, body(**fields), {"Authorization": f"Bearer {team}"}))


async def honest_is_served(made: Rig, times: int = 20) -> None:
    """Assert that every request of the other team is served."""
    assert [(await asks(made, "honest")).status for _ in range(times)] == [200] * times


def states(made: Rig) -> set[State]:
    """Return the state of every deployment that was called."""
    return {State(state) for _, state in made.gateway._dispatcher.deployments.breakers.states(0.0)}


def upload(team: str, *fields: str) -> bytes:
    """Return the head of a request whose body comes later."""
    lines = (f"POST {PATH} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {team}", *fields)
    return ("\r\n".join((*lines, "Content-Type: application/json")) + "\r\n\r\n").encode()


@asynccontextmanager
async def uploads(made: Rig, count: int, head: bytes, sent: bytes) -> AsyncIterator[list[RawClient]]:
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(connected(made.port)) for _ in range(count)]
        for client in clients:
            await client.send(head + sent)
        while made.gateway.in_flight < count:  # noqa: ASYNC110 - a count has no event
            await asyncio.sleep(0.001)
        yield clients


async def held(made: Rig, least: int) -> None:
    """Wait until `least` bytes of bodies have come."""
    while made.gateway._admission.bodies.total < least:  # noqa: ASYNC110 - a count has no event
        await asyncio.sleep(0.001)


async def test_threat_09_uploads_that_announce_much_and_send_a_byte_take_nothing_from_anybody() -> None:
    async with rig(TABLE, limits=LITTLE) as made:
        made.vendor.default = OK
        head = upload("hostile", f"Content-Length: {MAX_BODY}")
        async with uploads(made, 16, head, b"{"):
            await honest_is_served(made)
            assert (await asks(made, "hostile")).status == 200


async def test_threat_09_more_slow_uploads_than_requests_fit_take_no_place_from_another_team() -> None:
    async with rig(TABLE, limits=AdmissionLimits(requests=8)) as made:
        made.vendor.default = OK
        head = upload("hostile", "Content-Length: 1000")
        async with uploads(made, 8, head, b"{"):
            await honest_is_served(made)
            async with connected(made.port) as client:
                await client.send(head)
                assert (await client.answer()).code == "overloaded"


@pytest.mark.parametrize("framing", [f"Content-Length: {MAX_BODY}", "Transfer-Encoding: chunked"])
async def test_threat_09_a_team_that_fills_the_memory_of_bodies_is_the_one_that_is_refused(framing: str) -> None:
    piece = b"x" * 19_000
    sent = piece if "Length" in framing else b"%x\r\n%b\r\n" % (len(piece), piece)
    async with rig(TABLE, limits=LITTLE) as made:
        made.vendor.default = OK
        async with uploads(made, 5, upload("hostile", framing), sent) as clients:
            await held(made, 95_000)
            large: JsonValue = [{"role": "user", "content": "y" * 30_000}]
            for team in ("honest", "third"):
                assert (await asks(made, team, messages=large)).status == 200
            # The team alone is above its share, and the limit is exceeded: its own next chunk is refused.
            await clients[0].send(sent)
            assert (await clients[0].answer()).code == "overloaded"
            await honest_is_served(made, 3)


async def test_threat_09_one_team_may_have_all_that_no_other_wants() -> None:
    async with rig(TABLE, limits=LITTLE) as made:
        made.vendor.default = OK
        async with uploads(made, 3, upload("hostile", f"Content-Length: {MAX_BODY}"), b"x" * 28_000):
            await held(made, 84_000)
            text: JsonValue = [{"role": "user", "content": "y" * 10_000}]
            assert (await asks(made, "hostile", messages=text)).status == 200


async def test_threat_09_without_teams_clients_share_by_their_addresses() -> None:
    async with rig(TABLE.partition("teams:")[0], limits=LITTLE) as made:
        made.vendor.default = OK
        async with uploads(made, 5, upload("x", f"Content-Length: {MAX_BODY}"), b"x" * 19_000):
            await held(made, 95_000)
            text: JsonValue = [{"role": "user", "content": "y" * 10_000}]
            data = request("POST", PATH, body(messages=text))
            async with connected(made.port) as same:
                await same.send(data)
                assert (await same.answer()).code == "overloaded"
            reader, writer = await asyncio.open_connection("127.0.0.1", made.port, local_addr=("127.0.0.2", 0))
            other = RawClient(reader, writer)
            await other.send(data)
            assert (await other.answer()).status == 200
            await other.leave()


def slow(answer: Script, seconds: float = 0.4) -> Script:
    """Return a response that comes after `seconds` seconds."""
    return (Delay(seconds), *answer)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("way", ["inference_timeout", "x-request-timeout", "leaves"])
async def test_threat_10_a_client_without_patience_says_nothing_of_the_deployment(way: str, stream: bool) -> None:
    async def impatient() -> None:
        wish = {"inference_timeout": 0.1} if way == "inference_timeout" else {}
        headers = {"Authorization": "Bearer hostile", **({"x-request-timeout": "0.1"} if way[0] == "x" else {})}
        async with connected(made.port) as client:
            await client.send(request("POST", PATH, body(stream=stream, **wish), headers))
            if way == "leaves":
                await asyncio.sleep(0.1)
                return
            assert (await client.answer()).status == 504

    async with rig(TABLE) as made:
        made.vendor.default = slow(OK, 0.25)
        for _ in range(3):
            await asyncio.gather(*(impatient() for _ in range(12)))
            await honest_is_served(made, 2)
        assert states(made) == {State.CLOSED}
        deployments = made.gateway._dispatcher.deployments
        assert not dict(deployments.limited(asyncio.get_running_loop().time()))


async def test_threat_10_nor_do_failovers_that_its_patience_cut_short() -> None:
    two = TABLE.replace("completions: true", "completions: true, deployments: {a: {}, b: {}}")
    async with rig(two) as made:
        made.vendor.default = slow(OK)
        answers = await asyncio.gather(*(asks(made, "hostile", inference_timeout=0.3) for _ in range(30)))
        assert {answer.status for answer in answers} == {504}
        assert states(made) == {State.CLOSED}
        await honest_is_served(made, 3)


async def test_threat_10_what_hangs_beyond_the_operator_s_limit_is_ejected_whatever_the_clients_want() -> None:
    strict = TABLE.replace("completions: true", "completions: true, timeouts: {first_event: 50ms, total: 200ms}")
    async with rig(strict) as made:
        made.vendor.default = (Hang(),)
        for team in ("hostile", "honest"):
            for stream in (True, False):
                await asyncio.gather(
                    *(asks(made, team, stream=stream, inference_timeout=0.19 if stream else 5) for _ in range(6))
                )
        assert states(made) == {State.OPEN}


QUOTED = [
    ("xai", 400, {"code": "Client specified an invalid argument", "error": "Invalid reasoning effort: {}"}),
    ("gemini_compat", 400, [{"error": {"code": 400, "message": "Invalid value: {}", "status": "INVALID_ARGUMENT"}}]),
    ("openai", 400, {"error": {"message": "Invalid value: '{}'.", "type": "invalid_request_error", "code": None}}),
    ("cohere_compat", 400, {"message": "invalid request: {}"}),
    ("localai", 400, {"error": {"message": "{}", "code": 400, "type": ""}}),
]
WORDS = (
    "incorrect api key",
    "Incorrect API key provided: x. You can obtain an API key from https://console.x.ai. is no effort",
    "API key not valid. Please pass a valid API key. and more",
    "limited to 1000 API calls / month",
    "usage limit",
    "credit balance is too low",
    "Too many tokens per day, please wait before trying again.",
    "rate limit reached, try again in 60s; overloaded; insufficient_quota; model_not_found; 401 Unauthorized",
)


def quoting(template: JsonValue, words: str) -> JsonValue:
    if isinstance(template, str):
        return template.replace("{}", words)
    if isinstance(template, dict):
        return {name: quoting(value, words) for name, value in template.items()}
    return [quoting(value, words) for value in template] if isinstance(template, list) else template


@looped(("profile", "status", "template"), QUOTED, ids=[name for name, _, _ in QUOTED])
async def test_threat_11_a_client_s_words_in_a_vendor_s_message_eject_nothing(
    profile: str, status: int, template: JsonValue
) -> None:
    async with rig(VENDORS.replace("PROFILE", profile) + "models: {v/m: {}}\n" + TEAMS) as made:
        for words in WORDS:
            made.vendor.default = json_answer(status, quoting(template, words))
            for _ in range(6):
                said: JsonValue = [{"role": "user", "content": words}]
                assert (await asks(made, "hostile", messages=said)).code in ("invalid_value", "context_length_exceeded")
        assert states(made) == {State.CLOSED}


KEYLESS: JsonObject = {"type": "object", "not": {}}


async def test_threat_11_a_schema_that_no_answer_keeps_says_nothing_of_the_deployment() -> None:
    models = "models: {v/m: {upstream_model: openai/gpt-oss-120b}}\n"
    async with rig(VENDORS.replace("PROFILE", "groq") + models + TEAMS) as made:
        made.vendor.default = json_answer(400, {"error": {"message": "no", "code": "json_validate_failed"}})
        wanted: JsonValue = {"type": "json_schema", "json_schema": {"name": "n", "schema": KEYLESS}}
        for _ in range(12):
            assert (await asks(made, "hostile", response_format=wanted)).status == 502
        assert states(made) == {State.CLOSED}


async def test_threat_11_nor_does_one_that_the_gateway_itself_holds_the_answer_against() -> None:
    async with rig(VENDORS.replace("PROFILE", "gemini_compat") + "models: {v/m: {}}\n" + TEAMS) as made:
        made.vendor.default = json_answer(200, chat('{"a": 1}'))
        wanted: JsonValue = {"type": "json_schema", "json_schema": {"name": "n", "schema": KEYLESS}}
        for _ in range(12):
            answer = await asks(made, "hostile", response_format=wanted)
            assert (answer.status, answer.code) == (502, "malformed_upstream")
        assert states(made) == {State.CLOSED}


async def test_threat_11_nor_an_answer_whose_form_the_client_s_own_members_changed() -> None:
    async with rig(TABLE) as made:
        made.vendor.default = json_answer(200, {"odd": True})
        for _ in range(12):
            answer = await asks(made, "hostile", inference_extra_params={"form": "odd"})
            assert answer.status == 502
        assert states(made) == {State.CLOSED}


@looped("status", [500, 403, 503])
async def test_threat_11_what_a_vendor_fails_of_for_one_team_alone_ejects_nothing_for_others(status: int) -> None:
    def vendor(received: Received) -> Script:
        sent = received.json()
        assert isinstance(sent, dict)
        return OK if "user" not in sent else json_answer(status, {"error": {"message": "no", "code": None}})

    async with rig(TABLE) as made:
        made.vendor.default = vendor
        await honest_is_served(made, 1)
        for _ in range(3):
            await asyncio.gather(*(asks(made, "hostile", user="poison") for _ in range(20)))
            await honest_is_served(made, 2)


async def test_threat_11_nor_where_the_others_come_only_afterwards() -> None:
    def vendor(received: Received) -> Script:
        sent = received.json()
        assert isinstance(sent, dict)
        return OK if "user" not in sent else body_answer(500, b"poisoned")

    async def poison() -> None:
        await asks(made, "hostile", user="poison")

    async with rig(TABLE) as made:
        made.vendor.default = vendor
        async with Tasks() as tasks:
            for _ in range(20):
                tasks.start(poison())
            while states(made) != {State.OPEN}:  # noqa: ASYNC110 - a state has no event
                await asyncio.sleep(0.001)
            answers = await asyncio.gather(*(asks(made, "honest") for _ in range(10)))
        assert {answer.status for answer in answers} == {200}


async def test_threat_11_what_fails_for_two_teams_is_ejected_for_all() -> None:
    # On a busy machine this takes longer than the circuit stays open by itself.
    async with rig(TABLE + "defaults: {circuit_breaker: {cooldown: 10m}}\n") as made:
        made.vendor.default = body_answer(500, b"broken")
        for team in ("hostile", "honest") * 6:
            await asks(made, team)
        assert (await asks(made, "third")).status == 503
        assert states(made) == {State.OPEN}
