"""OpenAI's SDK, unmodified: embeddings through the gateway with the mock vendor behind it."""

from math import isclose
from typing import Any, cast

import pytest

from providers.json_types import JsonObject, JsonValue
from tests.e2e.kit import CLIENTS, Sdks, gateway_of
from tests.support.clients import Outcome

pytestmark = CLIENTS

SDKS = pytest.mark.parametrize("sdk", ["openai2", "openai3"])


gateway = gateway_of("version: 1\nvendors: {mock: {}}\nmodels: {mock/echo: {}}\n")


async def embed(sdks: Sdks, sdk: str, **fields: JsonValue) -> Outcome:
    return await sdks.run(sdk, "embeddings", fields)


def vectors(outcome: Outcome) -> list[list[float]]:
    assert outcome["error"] is None
    return [entry["embedding"] for entry in cast(Any, outcome["result"])["data"]]


# The SDK -------------------------------------------------------------------------------------------------------------


@SDKS
async def test_its_default_which_is_base64_gives_numbers(sdks: Sdks, sdk: str) -> None:
    default = vectors(await embed(sdks, sdk, model="mock/echo", input=["red cars", "blue sky"]))
    plain = vectors(await embed(sdks, sdk, model="mock/echo", input=["red cars", "blue sky"], encoding_format="float"))
    assert [len(vector) for vector in default] == [256, 256]
    for one, other in zip(default, plain, strict=True):
        assert all(isclose(a, b, abs_tol=1e-6) for a, b in zip(one, other, strict=True))


@SDKS
async def test_fields_and_token_ids_and_a_batch_beyond_the_vendor_s_limit(sdks: Sdks, sdk: str) -> None:
    fields: JsonObject = {"model": "mock/echo", "input": [[1, 2], [3]], "dimensions": 8, "user": "u"}
    assert [len(vector) for vector in vectors(await embed(sdks, sdk, **fields))] == [8, 8]
    texts: list[JsonValue] = [f"text {number}" for number in range(600)]
    many = vectors(await embed(sdks, sdk, model="mock/echo", input=texts, dimensions=16))
    (alone,) = vectors(await embed(sdks, sdk, model="mock/echo", input="text 555", dimensions=16))
    assert len(many) == 600
    assert many[555] == alone


@SDKS
async def test_errors_are_the_sdk_s_own(sdks: Sdks, sdk: str) -> None:
    error = (await embed(sdks, sdk, model="mock/echo", input=[]))["error"]
    assert error is not None
    assert (error["kind"], error["status_code"], error["param"]) == ("BadRequestError", 400, "input")
    missing = (await embed(sdks, sdk, model="mock/none-such/x", input="a"))["error"]
    assert missing is not None
    assert missing["status_code"] == 404
