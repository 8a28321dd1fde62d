"""The vendors' own SDKs get the same results from a vendor that supports everything and from one for which the gateway
emulates it.

The mock vendor responds both times: by itself, and as an engine that accepts one prompt, returns one choice, and
supports neither `echo` nor `best_of`.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio

from providers.json_types import JsonObject, JsonValue
from providers.mock import server as mock
from tests.e2e.kit import CLIENTS, Sdks, choices_of, totals
from tests.support.clients import Outcome
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.http_scripts import body_answer
from tests.support.looped import looped
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Received, Script

pytestmark = [*CLIENTS, pytest.mark.asyncio(loop_scope="module")]

TABLE = """\
version: 1
vendors:
  mock: {}
  plain: {profile: llamacpp, base_url: "UPSTREAM/v1", allow_private: true}
models:
  mock/*: {}
  plain/*: {context_window: 100000}
"""
TEXT = "Say hi now and then"
NEVER: list[JsonValue] = [f"never{number}" for number in range(20)]
CASES: dict[str, JsonObject] = {
    "two candidates": {"n": 2},
    "two prompts": {"prompt": [TEXT, "And you"]},
    "ten prompts with two candidates": {"prompt": [f"{TEXT} {number}" for number in range(10)], "n": 2},
    "echo": {"echo": True},
    "echo of two prompts with two candidates": {"echo": True, "prompt": [TEXT, "And you"], "n": 2},
    "a stop": {"stop": [" now"]},
}
SDKS = ["openai2", "openai3", "scale_gp", "scale_gp_beta", "fireworks0", "fireworks1"]
KINDS = looped("kind", ["completion", "completion_stream"])


def plain(received: Received) -> Script:
    """Return the mock's response to one call."""
    answer = mock.respond(received.path.removeprefix("/v1"), received.body)
    return body_answer(answer.status, b"".join(chunk.data for chunk in answer.chunks), list(answer.headers.items()))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningGateway]:
    async with AsyncExitStack() as stack:
        upstream = await stack.enter_async_context(FakeVendor(plain))
        table = TABLE.replace("UPSTREAM", upstream.base_url)
        yield await stack.enter_async_context(running_gateway(table, tmp_path_factory.mktemp("gateway")))


def shape(outcome: Outcome) -> dict[int, list[tuple[str, str | None]]]:
    """Return the text chunks of each choice, in order, with the finish reason of each choice that ended."""
    assert outcome["error"] is None
    found: dict[int, list[tuple[str, str | None]]] = {}
    for choice in choices_of(outcome):
        found.setdefault(choice["index"], []).append((choice["text"], choice["finish_reason"]))
    return found


def whole(outcome: Outcome) -> dict[int, tuple[str, str | None]]:
    """Return text and finish reason of each choice. Assert that nothing came after the reason."""
    for gains in shape(outcome).values():
        assert [reason is not None for _, reason in gains] == [False] * (len(gains) - 1) + [True]
    return {index: ("".join(text for text, _ in gains), gains[-1][1]) for index, gains in shape(outcome).items()}


@looped("sdk", SDKS)
@KINDS
@looped("case", CASES)
async def test_an_emulated_answer_is_a_native_one(sdk: str, kind: str, case: str, sdks: Sdks) -> None:
    fields: JsonObject = {"prompt": TEXT, "max_tokens": 20, **CASES[case]}
    native, emulated = [
        await sdks.run(sdk, kind, {"model": f"{vendor}/echo", **fields}) for vendor in ("mock", "plain")
    ]
    if not CASES[case].get("echo"):
        # The mock sends an echoed prompt word by word, the gateway all at once.
        assert shape(emulated) == shape(native)
    assert whole(emulated) == whole(native)
    assert totals(emulated["usage"]) == totals(native["usage"])
    assert (emulated["text"], emulated["finish_reason"]) == (native["text"], native["finish_reason"])
    if kind == "completion":
        assert list(shape(emulated)) == sorted(shape(emulated))


@looped("sdk", ["openai3", "fireworks1", "scale_gp"])
@KINDS
async def test_twenty_one_stops_end_as_one_does(sdk: str, kind: str, sdks: Sdks) -> None:
    for vendor in ("mock", "plain"):
        fields: JsonObject = {"model": f"{vendor}/echo", "prompt": TEXT, "max_tokens": 20, "stop": [*NEVER, "and"]}
        outcome = await sdks.run(sdk, kind, fields)
        assert (outcome["error"], outcome["text"], outcome["finish_reason"]) == (None, "Say hi now ", "stop")


@looped("sdk", ["openai2", "openai3", "scale_gp"])
async def test_the_best_of_three_is_one(sdk: str, sdks: Sdks) -> None:
    fields: JsonObject = {"model": "plain/long-4", "prompt": TEXT, "max_tokens": 20, "seed": 5}
    singles = [await sdks.run(sdk, "completion", {**fields, "seed": seed, "logprobs": 1}) for seed in (5, 6, 7)]
    means = {}
    for single in singles:
        (choice,) = choices_of(single)
        numbers = choice["logprobs"]["token_logprobs"]
        means[choice["text"]] = sum(numbers) / len(numbers)
    best = await sdks.run(sdk, "completion", {**fields, "best_of": 3})
    assert best["text"] == max(means, key=means.__getitem__)
    assert totals(best["usage"]) == [5, 12, 17]


@pytest.mark.parametrize("sdk", ["openai3", "fireworks1"])
async def test_candidates_of_the_sampled_text_differ(sdk: str, sdks: Sdks) -> None:
    for kind in ("completion", "completion_stream"):
        fields: JsonObject = {"model": "plain/long-4", "prompt": TEXT, "max_tokens": 20, "n": 3, "seed": 5}
        found = whole(await sdks.run(sdk, kind, fields))
        assert len({text for text, _ in found.values()}) == 3
