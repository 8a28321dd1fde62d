"""The vendors' own SDKs ignore keep-alives before a complete stream, and raise an exception before a failure."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio

from providers.json_types import JsonObject
from tests.e2e.kit import CLIENTS, Sdks
from tests.e2e.test_sdk_failures import EVERY, Way, facts_of
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.http_scripts import json_answer, sse_answer
from tests.support.openai_wire import chat_frames, completion_frames
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Delay, Received, Rst, Script

pytestmark = [*CLIENTS, pytest.mark.asyncio(loop_scope="module")]

AFTER_TWO = 0.35
"""Seconds in which a client has had more than two keep-alives."""

TABLE = """\
version: 1
defaults: {timeouts: {keep_alive: 100ms}, allow_private: true, api_key: k}
vendors:
  engine: {profile: openai_compatible, base_url: "ENGINE/v1"}
models:
  engine/*: {}
routes:
  both: {targets: [engine/dies, engine/late]}
"""
FIELDS: dict[str, JsonObject] = {
    "completion_stream": {"prompt": "Say it."},
    "chat_stream": {"messages": [{"role": "user", "content": "Say it."}]},
}
KINDS = pytest.mark.parametrize("kind", ["chat_stream", pytest.param("completion_stream", marks=pytest.mark.nightly)])


def late(received: Received) -> Script:
    """Return two words after a silence, in the form that the request wants."""
    frames = chat_frames if received.path.endswith("/chat/completions") else completion_frames
    return (Delay(AFTER_TWO), *sse_answer(frames(["one", "two"])))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningGateway]:
    async with AsyncExitStack() as stack:
        vendor = await stack.enter_async_context(FakeVendor(late))
        vendor.answer_model("dies", (Delay(AFTER_TWO), Rst()))
        vendor.answer_model("fails", (Delay(AFTER_TWO), *json_answer(500, {"error": {"message": "it is down"}})))
        text = TABLE.replace("ENGINE", vendor.base_url)
        yield await stack.enter_async_context(running_gateway(text, tmp_path_factory.mktemp("gateway")))


@EVERY
@KINDS
@pytest.mark.parametrize("model", ["both", pytest.param("engine/late", marks=pytest.mark.nightly)])
async def test_a_stream_after_keep_alives_is_the_same_to_an_sdk(way: Way, kind: str, model: str, sdks: Sdks) -> None:
    outcome = await sdks.run(way.sdk, kind, {**FIELDS[kind], "model": model}, way.options())
    assert outcome["error"] is None, outcome
    assert (outcome["text"], outcome["finish_reason"]) == ("onetwo", "stop")


@EVERY
@KINDS
async def test_a_failure_after_keep_alives_raises_as_a_broken_stream_does(way: Way, kind: str, sdks: Sdks) -> None:
    fields: JsonObject = {**FIELDS[kind], "model": "engine/fails"}
    outcome = await sdks.run(way.sdk, kind, fields, way.options(max_retries=2))
    raised = outcome["error"]
    assert raised is not None, outcome
    assert (raised["kind"], outcome["text"], outcome["finish_reason"]) == (way.broken, "", None)
    if way.broken != "RemoteProtocolError":
        assert facts_of(raised)["code"] == "upstream_error"
