"""Each SDK's driver against a canned vendor: the SDK's requests, results and exceptions come through unchanged."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import pytest

from providers.json_types import JsonObject
from tests.support import openai_wire
from tests.support.clients import RECIPES, Client, Options
from tests.support.http_scripts import DONE, data_frames, json_answer, sse_answer, sse_unterminated
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Fin, Hang, Script

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]

Clients = Callable[[str], Client]


@dataclass(frozen=True, slots=True)
class Habit:
    """The requests of an SDK: the two paths, and the header of its key."""

    completions: str
    chat: str
    key: tuple[str, str] = ("authorization", "Bearer sk-test")


SCALE_KEY = ("x-api-key", "sk-test")
OPENAI = Habit("/v1/completions", "/v1/chat/completions")
FIREWORKS = Habit("/inference/v1/completions", "/inference/v1/chat/completions")
SCALE_V4 = Habit("/v4/beta/completions", "/v4/beta/chat/completions", SCALE_KEY)
SCALE_V5 = Habit("/v5/completions", "/v5/chat/completions", SCALE_KEY)
HABITS = {
    "openai2": OPENAI,
    "openai3": OPENAI,
    "scale_gp_a58": SCALE_V4,
    "scale_gp": SCALE_V4,
    "scale_gp_beta": SCALE_V5,
    "fireworks0": FIREWORKS,
    "fireworks1": FIREWORKS,
}
EVERY = pytest.mark.parametrize("name", RECIPES)
STAINLESS = pytest.mark.parametrize("name", [name for name in RECIPES if name != "fireworks0"])
"""The SDKs of one generator (Stainless), whose exceptions have a status. fireworks-ai 0.x has its own."""

ASK: JsonObject = {"model": "m", "prompt": "Say hi"}
CHAT: JsonObject = {"model": "m", "messages": [{"role": "user", "content": "Say hi"}]}
SCENARIOS = [("completion", ASK), ("completion_stream", ASK), ("chat", CHAT), ("chat_stream", CHAT)]


def frames_for(name: str, frames: list[bytes]) -> list[bytes]:
    """Return the frames that the SDK accepts: the Scale SDKs fail on the terminator (tried in November 2026)."""
    return [frame for frame in frames if frame != DONE] if name.startswith("scale") else frames


def script_for(name: str, scenario: str) -> Script:
    """Return the canned response `Hello!`."""
    texts = ["Hel", "lo", "!"]
    return {
        "completion": json_answer(200, openai_wire.completion("Hello!")),
        "completion_stream": sse_answer(frames_for(name, openai_wire.completion_frames(texts))),
        "chat": json_answer(200, openai_wire.chat("Hello!")),
        "chat_stream": sse_answer(frames_for(name, openai_wire.chat_frames(texts))),
    }[scenario]


@pytest.fixture
async def vendor() -> AsyncIterator[FakeVendor]:
    async with FakeVendor() as running:
        yield running


def test_every_sdk_has_its_habits_described() -> None:
    assert HABITS.keys() == RECIPES.keys()


@EVERY
@pytest.mark.parametrize(("scenario", "fields"), SCENARIOS)
async def test_an_answer_comes_through(
    name: str, scenario: str, fields: JsonObject, clients: Clients, vendor: FakeVendor
) -> None:
    vendor.answer(script_for(name, scenario))
    outcome = await clients(name).run(scenario, vendor.base_url, fields)
    assert outcome["error"] is None
    assert (outcome["text"], outcome["finish_reason"]) == ("Hello!", "stop")
    assert outcome["usage"] == openai_wire.USAGE
    assert bool(outcome["chunks"]) is ("stream" in scenario)

    (request,) = vendor.requests
    habit, sent = HABITS[name], request.json()
    assert request.path == (habit.chat if "chat" in scenario else habit.completions)
    assert request.header(habit.key[0]) == habit.key[1]
    assert isinstance(sent, dict)
    assert {key: sent[key] for key in fields} == fields
    assert bool(sent.get("stream")) is ("stream" in scenario)


def refusal(code: str) -> JsonObject:
    """Return an error body in the form in which every SDK finds its message."""
    error: JsonObject = {"message": "No.", "type": "invalid_request_error", "param": "model", "code": code}
    return {"error": error, "detail": "No."}


@STAINLESS
@pytest.mark.parametrize(
    ("status", "kind"), [(401, "AuthenticationError"), (422, "UnprocessableEntityError"), (502, "InternalServerError")]
)
async def test_refusals_have_a_status(name: str, status: int, kind: str, clients: Clients, vendor: FakeVendor) -> None:
    vendor.answer(json_answer(status, refusal("some_code")))
    outcome = await clients(name).run("completion", vendor.base_url, ASK)
    assert outcome["error"] is not None
    assert (outcome["error"]["kind"], outcome["error"]["status_code"]) == (kind, status)
    if name.startswith("openai"):
        assert (outcome["error"]["code"], outcome["error"]["param"]) == ("some_code", "model")
        assert outcome["error"]["type"] == "invalid_request_error"
    assert "No." in outcome["error"]["message"]
    assert len(vendor.requests) == 1


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, "AuthenticationError"), (404, "InvalidRequestError"), (422, "HTTPStatusError"), (502, "BadGatewayError")],
)
async def test_a_refusal_is_raised_by_the_old_fireworks_sdk_in_its_own_words(
    status: int, kind: str, clients: Clients, vendor: FakeVendor
) -> None:
    vendor.answer(json_answer(status, refusal("some_code")))
    outcome = await clients("fireworks0").run("completion", vendor.base_url, ASK)
    assert outcome["error"] is not None
    assert outcome["error"]["kind"] == kind


@EVERY
async def test_a_stream_cut_half_way_raises_after_its_chunks(name: str, clients: Clients, vendor: FakeVendor) -> None:
    vendor.answer(sse_unterminated(openai_wire.completion_frames(["Hel", "lo"])[:1], Fin()))
    outcome = await clients(name).run("completion_stream", vendor.base_url, ASK)
    assert (outcome["text"], outcome["finish_reason"]) == ("Hel", None)
    assert outcome["error"] is not None


@pytest.mark.parametrize("name", ["openai2", "openai3"])
async def test_an_error_in_a_stream_is_raised_with_its_code(name: str, clients: Clients, vendor: FakeVendor) -> None:
    frames = [*openai_wire.completion_frames(["Hel"])[:1], *data_frames(refusal("upstream_error"))]
    vendor.answer(sse_answer(frames))
    outcome = await clients(name).run("completion_stream", vendor.base_url, ASK)
    assert outcome["text"] == "Hel"
    assert outcome["error"] is not None
    assert (outcome["error"]["kind"], outcome["error"]["code"]) == ("APIError", "upstream_error")


@EVERY
async def test_a_client_that_has_enough_closes_its_connection(name: str, clients: Clients, vendor: FakeVendor) -> None:
    vendor.answer(sse_unterminated(openai_wire.completion_frames(["Hel", "lo"])[:2], Hang()))
    outcome = await clients(name).run("completion_stream", vendor.base_url, ASK, Options(leave_after=2))
    assert (outcome["text"], outcome["error"]) == ("Hello", None)
    await vendor.requests[0].gone.wait()


@STAINLESS
async def test_a_field_that_no_sdk_knows_is_sent_as_extra_body(name: str, clients: Clients, vendor: FakeVendor) -> None:
    vendor.answer(script_for(name, "completion"))
    extra: JsonObject = {"guided_choice": ["a", "b"]}
    await clients(name).run("completion", vendor.base_url, {**ASK, "extra_body": extra})
    sent = vendor.requests[0].json()
    assert isinstance(sent, dict)
    assert sent["guided_choice"] == ["a", "b"]


@STAINLESS
async def test_retries_are_off_unless_asked_for(name: str, clients: Clients, vendor: FakeVendor) -> None:
    busy = json_answer(503, refusal("overloaded"), [("retry-after-ms", "1")])
    vendor.answer(busy, busy, script_for(name, "completion"))
    outcome = await clients(name).run("completion", vendor.base_url, ASK)
    assert outcome["error"] is not None
    outcome = await clients(name).run("completion", vendor.base_url, ASK, Options(max_retries=1))
    assert (outcome["text"], len(vendor.requests)) == ("Hello!", 3)


@pytest.mark.parametrize("name", ["openai2", "openai3"])
async def test_models_are_listed_and_found_at_another_prefix(name: str, clients: Clients, vendor: FakeVendor) -> None:
    model: JsonObject = {"id": "v/m", "object": "model", "created": 1, "owned_by": "v"}
    vendor.answer(json_answer(200, {"object": "list", "data": [model]}), json_answer(200, model))
    listed = await clients(name).run("models", vendor.base_url, {}, Options(prefix="/p"))
    found = await clients(name).run("model", vendor.base_url, {"model": "v/m"}, Options(prefix="/p"))
    assert listed["result"]["data"] == [model]
    assert found["result"] == model
    assert [request.target for request in vendor.requests] == ["/p/models", "/p/models/v%2Fm"]


async def test_the_request_id_of_the_server_is_shown(clients: Clients, vendor: FakeVendor) -> None:
    vendor.answer(json_answer(200, openai_wire.completion("x"), [("x-request-id", "req-1")]))
    outcome = await clients("openai3").run("completion", vendor.base_url, ASK)
    assert outcome["request_id"] == "req-1"


async def test_an_order_that_no_driver_understands_is_no_answer_of_the_sdk() -> None:
    with Client("openai3") as client, pytest.raises(RuntimeError, match="openai3"):
        await client.run("nonsense", "http://127.0.0.1:1", {})
