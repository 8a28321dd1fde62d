"""Bodies of every size and depth, through the whole gateway."""

import asyncio
import threading
from collections.abc import Container, Mapping

import orjson
import pytest

from providers.json_types import JsonObject, JsonValue
from proxy.dispatch import next_deployment
from proxy.overload.admission_limits import AdmissionLimits
from proxy.surfaces.request import heavy_body
from proxy.surfaces.request import parse_json as body_module
from proxy.surfaces.request import parse_request as parse_module
from tests.proxy.kit.gateway_rig import AUTH, MAX_BODY, Rig, ask, rig
from tests.proxy.kit.raw_client import connected, exchange, request
from tests.support.looped import looped


@pytest.mark.parametrize(("size", "beside"), [(4096, False), (4097, True)])
async def test_a_long_body_is_read_beside_the_loop(
    served: Rig, size: int, beside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heavy_body, "INLINE_PARSE_BYTES", 4096)
    readers: list[int] = []

    def load(body: bytes, acted_on: Container[str]) -> JsonObject:
        readers.append(threading.get_ident())
        return body_module.load(body, acted_on)

    monkeypatch.setattr(parse_module, "load", load)
    bare = len(orjson.dumps(ask()))
    answer = await served.post("/v1/completions", ask() | {"prompt": "hi" + "x" * (size - bare)})
    assert answer.status == 200
    assert [reader != threading.get_ident() for reader in readers] == [beside]


async def test_a_fault_of_a_long_body_is_told_as_of_any(served: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heavy_body, "INLINE_PARSE_BYTES", 10)
    refused = await served.post("/v1/completions", ask(temperature=3))
    assert (refused.status, refused.code, refused.error()["param"]) == (400, "invalid_value", "temperature")


@pytest.mark.parametrize(("depth", "status"), [(63, 200), (64, 200), (65, 400), (1024, 400), (45_000, 400)])
async def test_nesting_is_taken_up_to_the_limit_and_never_a_fault_of_ours(
    served: Rig, depth: int, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    nested = b"[" * (depth - 1) + b"]" * (depth - 1)
    for path in ("/v1/completions", "/v5/completions"):
        answer = await served.post(path, b'{"model":"v/m","prompt":"hi","x":%b}' % nested)
        assert answer.status == (422 if path[2] == "5" and status == 400 else status)
    assert caplog.text == ""


UNREADABLE = {
    "not a number": b'{"model":"v/m","prompt":"p","x":NaN}',
    "infinity": b'{"model":"v/m","prompt":"p","x":-Infinity}',
    "a number beyond a double": b'{"model":"v/m","prompt":"p","x":1e999}',
    "an integer beyond 64 bits": b'{"model":"v/m","prompt":"p","x":18446744073709551616}',
    "an integer of 5,000 digits": b'{"model":"v/m","prompt":"p","x":%b}' % (b"9" * 5000),
    "a lone surrogate": b'{"model":"v/m","prompt":"\\ud800"}',
    "half a character": b'{"model":"v/m","prompt":"\xe2\x82"}',
    "UTF-16": '{"model":"v/m","prompt":"p"}'.encode("utf-16"),
    "UTF-32": '{"model":"v/m","prompt":"p"}'.encode("utf-32"),
    "the model twice": b'{"model":"v/m","prompt":"p","model":"v/two"}',
    "a stream and none": b'{"model":"v/m","prompt":"p","stream":false,"str\\u0065am":true}',
    "a bomb of objects": b'{"model":"v/m","prompt":"p","x":[' + b"{}," * 33_000 + b"{}]}",
    "a bomb of brackets": b'{"model":"v/m","prompt":"p","x":' + b"[" * 99_000,
}


@looped("path", ["/v1/completions", "/v4/beta/completions"])
@looped("body", UNREADABLE.values(), ids=UNREADABLE.keys())
async def test_what_parsers_read_differently_reaches_no_vendor(
    served: Rig, body: bytes, path: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body_module, "MAX_ELEMENTS", 30_000)
    answer = await served.post(path, body)
    assert (answer.status, answer.code) == (422 if path[2] == "4" else 400, "invalid_value")
    assert served.vendor.requests == []
    assert caplog.text == ""


async def test_a_byte_order_mark_before_a_body_is_no_fault(served: Rig) -> None:
    assert (await served.post("/v1/completions", b"\xef\xbb\xbf" + orjson.dumps(ask()))).status == 200


UNREAD = (
    b"[1.5,-0.0,1e+22,1.7976931348623157e+308,5e-324,0.1,9007199254740993,18446744073709551615,-9223372036854775808,"
    b'{"b":"\xc3\xa9 \xe2\x80\xa8 \\" \\\\ \\n \xf0\x9f\x98\x80","a":null,"":[true,false,{}]}]'
)


async def test_what_nobody_reads_here_reaches_the_vendor_byte_for_byte(served: Rig) -> None:
    assert (await served.post("/v1/completions", b'{"model":"v/m","prompt":"p","x":%b}' % UNREAD)).status == 200
    assert b'"x":' + UNREAD in served.vendor.requests[0].body


async def test_what_is_too_large_by_itself_is_not_put_down_to_the_others() -> None:
    def head(length: int) -> bytes:
        return request("POST", "/v1/completions", None, AUTH).replace(b"Length: 0", b"Length: %d" % length)

    async with rig(limits=AdmissionLimits(body_bytes=50_000)) as made, connected(made.port) as first:
        await first.send(head(90_000) + b" " * 40_000)
        while made.gateway._admission.bodies.total < 40_000:  # noqa: ASYNC110 - no event
            await asyncio.sleep(0)
        sent = (head(20_000) + b" " * 20_000, head(MAX_BODY + 1))
        codes = [(await exchange(made.port, each)).code for each in sent]
    assert codes == ["overloaded", "request_too_large"]


def _schema(count: int) -> JsonObject:
    names: list[JsonValue] = [f"name_{at:04d}" for at in range(count)]
    properties: JsonObject = {str(name): {"type": "string"} for name in names}
    return {"type": "object", "properties": properties, "required": names, "additionalProperties": False}


def _with_schema(field: str, schema: JsonObject) -> JsonObject:
    function: JsonObject = {"name": "f", "parameters": schema, "strict": field == "strict tools"}
    fields: Mapping[str, JsonObject] = {
        "guided_json": {"guided_json": schema},
        "response_format": {
            "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": schema, "strict": True}}
        },
        "strict tools": {"tools": [{"type": "function", "function": function}]},
        "tools": {"tools": [{"type": "function", "function": function}]},
    }
    return fields[field]


@pytest.mark.parametrize(
    ("field", "count", "beside"),
    [
        *[(field, 20, False) for field in ("guided_json", "response_format", "strict tools", "tools")],
        *[(field, 400, True) for field in ("guided_json", "response_format", "strict tools")],
        ("tools", 400, False),
    ],
)
async def test_schemas_that_an_answer_is_held_to_are_fitted_beside_the_loop_if_they_are_large(
    served: Rig, field: str, count: int, beside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    planners: list[int] = []

    def noted(*given: object) -> object:
        planners.append(threading.get_ident())
        return prepared_for(*given)  # type: ignore[arg-type]  # as it is called

    prepared_for = next_deployment.prepared_for
    monkeypatch.setattr(next_deployment, "prepared_for", noted)
    asked: JsonObject = {"model": "v/m", "messages": [{"role": "user", "content": "hi"}]}
    await served.post("/v1/chat/completions", {**asked, **_with_schema(field, _schema(count))})
    assert planners
    assert [planner != threading.get_ident() for planner in planners] == [beside] * len(planners)
