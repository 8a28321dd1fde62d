"""Requests that no client should send, as bytes on a socket: each gets its surface's error envelope, never a 500."""

import random
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

import orjson
import pytest
import pytest_asyncio

from providers.json_types import JsonObject, JsonValue
from providers.request_fields import PROTECTED_PARAMS
from tests.proxy.kit.raw_client import Answer, connected, exchange, request
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.looped import looped
from tests.support.vendor import FakeVendor

pytestmark = pytest.mark.asyncio(loop_scope="module")

LIMIT = 300_000
TABLE = f"""\
version: 1
server:
  port: ${{PORT}}
  max_body: {LIMIT}
  admin:
    port: ${{ADMIN_PORT}}
vendors:
  mock: {{}}
  openai: {{api_key: k, base_url: "UPSTREAM/v1", allow_private: true}}
  cohere: {{api_key: k, base_url: UPSTREAM, allow_private: true}}
  claude: {{profile: anthropic, api_key: k, base_url: UPSTREAM, allow_private: true}}
  local: {{profile: llamacpp, base_url: "UPSTREAM/v1", allow_private: true}}
models:
  mock/echo: {{}}
  openai/*: {{}}
  claude/*: {{max_output_tokens: 100}}
  local/*: {{}}
  cohere/*: {{}}
routes:
  all: {{targets: [openai/gpt-4o, claude/m, local/m]}}
"""


def openai_envelope(body: JsonValue, status: int) -> JsonValue:
    """Return the `error` object of OpenAI's envelope after checking it."""
    assert isinstance(body, dict)
    assert body.keys() == {"error"}
    return body["error"]


def fireworks_envelope(body: JsonValue, status: int) -> JsonValue:
    """Return the same with Fireworks' own field, which is removed from the result."""
    error = openai_envelope(body, status)
    assert isinstance(error, dict)
    assert error["object"] == "error"
    return {name: value for name, value in error.items() if name != "object"}


def detail_envelope(body: JsonValue, status: int) -> JsonValue:
    """Return the same beside a `detail` whose form depends on the status."""
    assert isinstance(body, dict)
    assert body.keys() == {"detail", "error"}
    detail = body["detail"]
    if status == 422:
        assert isinstance(detail, list)
        assert detail
        for problem in detail:
            assert isinstance(problem, dict)
            assert problem.keys() == {"loc", "msg", "type"}
            assert isinstance(problem["loc"], list)
            assert problem["loc"][0] == "body"
    else:
        assert isinstance(detail, str)
    return body["error"]


@dataclass(frozen=True, slots=True)
class Door:
    """One path of a surface: the prefix of its unknown paths, the envelope, and the status for a bad body."""

    path: str
    prefix: str
    envelope: Callable[[JsonValue, int], JsonValue]
    bad_body: int

    @property
    def chat(self) -> bool:
        return "chat" in self.path

    def ask(self, extra: str = "") -> bytes:
        content = '"messages":[{"role":"user","content":"hi"}]' if self.chat else '"prompt":"hi"'
        return f'{{"model":"mock/echo",{content}{extra}}}'.encode()


PAIS = "/api/v1/compatibility/openai"
DOORS = [
    Door("/v1/completions", "/v1", openai_envelope, 400),
    Door("/v1/chat/completions", "", openai_envelope, 400),
    Door("/v1/fim/completions", "/v1/fim", openai_envelope, 400),
    Door("/inference/v1/completions", "/inference", fireworks_envelope, 400),
    Door("/inference/v1/chat/completions", "/inference/v1", fireworks_envelope, 400),
    Door("/v4/beta/completions", "/v4", detail_envelope, 422),
    Door("/v4/beta/chat/completions", "/v4/beta", detail_envelope, 422),
    Door("/v5/completions", "/v5", detail_envelope, 422),
    Door("/v5/chat/completions", "/v5", detail_envelope, 422),
    Door(f"{PAIS}/v1/completions", PAIS, detail_envelope, 422),
    Door(f"{PAIS}/v1/chat/completions", f"{PAIS}/v1", detail_envelope, 422),
]
EVERY = looped("door", [pytest.param(door, id=door.path) for door in DOORS])

DEEP = "[" * 30_000 + "]" * 30_000
UNREADABLE: dict[str, Callable[[Door], bytes]] = {
    "no body": lambda door: b"",
    "half an object": lambda door: door.ask()[:-1],
    "two objects": lambda door: door.ask() + door.ask(),
    "a list": lambda door: b"[" + door.ask() + b"]",
    "a string": lambda door: b'"hi"',
    "null": lambda door: b"null",
    "single quotes": lambda door: door.ask().replace(b'"', b"'"),
    "NaN": lambda door: door.ask(',"temperature":NaN'),
    "Infinity": lambda door: door.ask(',"temperature":-Infinity'),
    "a number beyond a double": lambda door: door.ask(',"temperature":1e999'),
    "a lone surrogate": lambda door: door.ask(',"user":"\\ud800"'),
    "a lone surrogate in the text": lambda door: door.ask().replace(b'"hi"', b'"\\udfff"'),
    "bytes that are no UTF-8": lambda door: door.ask().replace(b'"hi"', b'"\xff\xfe"'),
    "UTF-16": lambda door: door.ask().decode().encode("utf-16"),
    "a control character": lambda door: door.ask().replace(b'"hi"', b'"\x01"'),
    "lists 30,000 deep": lambda door: door.ask(f',"logit_bias":{DEEP}'),
    "lists 65 deep": lambda door: door.ask(',"metadata":' + "[" * 65 + "]" * 65),
    "objects 65 deep": lambda door: door.ask(',"guided_json":' + '{"a":' * 65 + "1" + "}" * 65),
    "250,000 elements": lambda door: door.ask(',"stop":[' + "," * 250_000 + "]"),
}
FIELDS: dict[str, tuple[Callable[[Door], bytes], str]] = {
    "two models": (lambda door: door.ask(',"model":"mock/echo"'), "model"),
    "two models in different spelling": (lambda door: door.ask(',"mod\\u0065l":"mock/other"'), "model"),
    "two streams": (lambda door: door.ask(',"stream":false,"stream":true'), "stream"),
    "no model": (lambda door: door.ask().replace(b'"model":"mock/echo",', b""), "model"),
    "a number as model": (lambda door: door.ask().replace(b'"mock/echo"', b"7"), "model"),
    "an empty model": (lambda door: door.ask().replace(b"mock/echo", b""), "model"),
    "text as stream": (lambda door: door.ask(',"stream":"true"'), "stream"),
    "an integer beyond 64 bits": (lambda door: door.ask(',"seed":18446744073709551616'), "seed"),
    "a boolean as number": (lambda door: door.ask(',"temperature":true'), "temperature"),
    "stream options without a stream": (lambda door: door.ask(',"stream_options":{}'), "stream_options"),
    "an empty stop": (lambda door: door.ask(',"stop":""'), "stop"),
    "two constraints": (lambda door: door.ask(',"guided_regex":"a","guided_choice":["a"]'), "guided_choice"),
    "a header of ours": (
        lambda door: door.ask(',"inference_extra_headers":{"Authorization":"x"}'),
        "inference_extra_headers.Authorization",
    ),
    "a member of ours": (
        lambda door: door.ask(',"inference_extra_params":{"stream":true}'),
        "inference_extra_params.stream",
    ),
}
TOOL: JsonObject = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
UNSENT: dict[str, tuple[JsonObject, str]] = {
    "two guided fields": ({"guided_regex": "a", "guided_json": {}}, "guided_regex"),
    "guided with tools": ({"guided_choice": ["a"], "tools": [TOOL]}, "guided_choice"),
    "guided with another format": (
        {"guided_choice": ["a"], "response_format": {"type": "json_object"}},
        "guided_choice",
    ),
    "a schema that is none": ({"guided_json": {"type": "strin"}}, "guided_json"),
    "a schema elsewhere": ({"guided_json": {"$ref": "https://example.com/s.json"}}, "guided_json"),
    "a pattern that does not compile": ({"guided_regex": "(a"}, "guided_regex"),
    "no choice": ({"guided_choice": []}, "guided_choice"),
    "fewer candidates than choices": ({"best_of": 2, "n": 3}, "best_of"),
    "candidates in a stream": ({"best_of": 2, "stream": True}, "best_of"),
    "33 stops": ({"stop": [f"s{number}" for number in range(33)]}, "stop"),
    "33 stops under two names": (
        {"stop": [f"s{number}" for number in range(20)], "stop_sequences": [f"t{number}" for number in range(13)]},
        "stop",
    ),
    "images without markers": ({"images": ["data:image/png;base64,iVBORw=="]}, "images"),
    "a header with a line of its own": (
        {"inference_extra_headers": {"X-A": "b\r\nX-B: c"}},
        "inference_extra_headers.X-A",
    ),
    "a header with a line feed": ({"inference_extra_headers": {"X-A": "b\n"}}, "inference_extra_headers.X-A"),
    "a header with a NUL": ({"inference_extra_headers": {"X-A": "b\0"}}, "inference_extra_headers.X-A"),
    "a header's name with a line of its own": (
        {"inference_extra_headers": {"X-A: b\r\nX-B": "c"}},
        "inference_extra_headers",
    ),
    **{
        f"{name} as an extra": ({"inference_extra_params": {name: 1}}, f"inference_extra_params.{name}")
        for name in sorted(PROTECTED_PARAMS)
    },
    "a timeout in minutes": ({"inference_timeout": "2m"}, "inference_timeout"),
    "a timeout of nothing": ({"inference_timeout": 0}, "inference_timeout"),
}
"""Fields that are refused before any upstream is called, and the field that the error names."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def upstream() -> AsyncIterator[FakeVendor]:
    async with FakeVendor() as vendor:
        yield vendor


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(upstream: FakeVendor, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningGateway]:
    table = TABLE.replace("UPSTREAM", upstream.base_url)
    async with running_gateway(table, tmp_path_factory.mktemp("gateway")) as running:
        yield running


@pytest.fixture
def port(gateway: RunningGateway) -> int:
    return urlsplit(gateway.url).port or 0


async def served(port: int, sent: bytes) -> Answer:
    """Return the gateway's response to a request. Repeat the request while a busy machine makes the gateway refuse
    it."""
    while (answer := await exchange(port, sent)).status == 503 and b'"overloaded"' in answer.body:
        pass
    return answer


def error_of(answer: Answer, envelope: Callable[[JsonValue, int], JsonValue], status: int) -> dict[str, JsonValue]:
    """Return the error object of a refusal with that status, in that envelope, with the headers that every response
    has."""
    assert answer.status == status, answer.body
    assert answer.whole
    assert answer.headers["content-type"].startswith("application/json")
    assert answer.headers["x-request-id"]
    error = envelope(orjson.loads(answer.body), status)
    assert isinstance(error, dict)
    assert error.keys() == {"message", "type", "param", "code"}
    assert error["message"]
    return error


# Bodies --------------------------------------------------------------------------------------------------------------


@EVERY
async def test_the_good_body_that_the_bad_ones_are_made_of_is_answered(door: Door, port: int) -> None:
    for body in (door.ask(), b"\xef\xbb\xbf" + door.ask(), door.ask(',"temperature":null')):
        assert (await served(port, request("POST", door.path, body))).status == 200


@EVERY
@looped("case", UNREADABLE)
async def test_a_body_that_cannot_be_read_is_refused_in_the_surfaces_envelope(door: Door, case: str, port: int) -> None:
    answer = await served(port, request("POST", door.path, UNREADABLE[case](door)))
    error = error_of(answer, door.envelope, door.bad_body)
    assert error["type"] == "invalid_request_error"


@EVERY
@looped("case", FIELDS)
async def test_a_bad_field_is_named_in_the_surfaces_envelope(door: Door, case: str, port: int) -> None:
    make, field = FIELDS[case]
    answer = await served(port, request("POST", door.path, make(door)))
    error = error_of(answer, door.envelope, door.bad_body)
    assert error["param"] == field
    assert field.partition(".")[0] in str(error["message"])


@EVERY
@looped("case", UNSENT)
async def test_what_must_not_be_sent_is_refused_by_its_name_and_reaches_no_upstream(
    door: Door, case: str, port: int, upstream: FakeVendor
) -> None:
    fields, param = UNSENT[case]
    for model in ("all", "openai/gpt-4o", "claude/m"):
        body: JsonObject = {**orjson.loads(door.ask()), **fields, "model": model}
        answer = await served(port, request("POST", door.path, body))
        error = error_of(answer, door.envelope, door.bad_body)
        assert (error["param"], error["type"]) == (param, "invalid_request_error")
        assert f"'{param.partition('.')[0]}" in str(error["message"])
    assert (upstream.requests, upstream.connections) == ([], 0)


@EVERY
async def test_a_field_that_neither_gateway_nor_vendor_knows_is_refused_by_name(door: Door, port: int) -> None:
    body: JsonObject = {**orjson.loads(door.ask()), "nonsense": 1, "model": "cohere/m"}
    answer = await served(port, request("POST", door.path, body))
    assert error_of(answer, door.envelope, door.bad_body)["param"] == "nonsense"


@EVERY
async def test_a_body_beyond_the_limit_is_a_413_whether_its_size_was_said_or_not(door: Door, port: int) -> None:
    large = door.ask(f',"user":"{"x" * LIMIT}"')
    said = await served(port, request("POST", door.path, large))
    assert error_of(said, door.envelope, 413)["code"] == "request_too_large"
    head = f"POST {door.path} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    async with connected(port) as client:
        await client.send(head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(large), large))
        unsaid = await client.answer()
    assert error_of(unsaid, door.envelope, 413)["code"] == "request_too_large"


@EVERY
async def test_damaged_bodies_never_make_a_500(door: Door, port: int) -> None:
    good = door.ask(',"max_tokens":3,"stop":["x"],"seed":7,"logit_bias":{"1":2}')
    async with connected(port) as client:
        for _ in range(100):
            damaged = bytearray(good)
            for _ in range(random.randrange(1, 4)):
                damaged[random.randrange(len(damaged))] = random.randrange(256)
            await client.send(request("POST", door.path, bytes(damaged)))
            answer = await client.answer()
            if answer.status != 200:
                # 400 is also the vendor's response to an unknown field.
                assert answer.status in {door.bad_body, 400, 404}, (bytes(damaged), answer)
                error_of(answer, door.envelope, answer.status)


# Paths, methods and bytes --------------------------------------------------------------------------------------------


@EVERY
async def test_an_unknown_path_wears_the_envelope_of_the_nearest_surface(door: Door, port: int) -> None:
    for method in ("GET", "POST", "PROPFIND"):
        answer = await served(port, request(method, f"{door.prefix}/nonsense"))
        error = error_of(answer, door.envelope, 404)
        assert "nonsense" in str(error["message"])


@EVERY
async def test_a_wrong_method_is_told_the_right_one(door: Door, port: int) -> None:
    for method in ("GET", "PUT", "DELETE", "OPTIONS", "PROPFIND"):
        answer = await served(port, request(method, door.path))
        error_of(answer, door.envelope, 405)
        assert answer.headers["allow"] == "POST"


@EVERY
async def test_repeated_slashes_are_one(door: Door, port: int) -> None:
    answer = await served(port, request("POST", door.path.replace("/", "//"), door.ask()))
    assert answer.status == 200


@looped("path", ["/tokenize", "/tokenizer_info", "/metrics", "/status", "/-/reload", "/", "/%00"])
async def test_what_is_not_served_publicly_is_a_404(path: str, port: int) -> None:
    answer = await served(port, request("GET", path))
    error_of(answer, openai_envelope, 404)


@looped(
    "head",
    [
        b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Length: nine\r\n\r\n",
        b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
        b"POST %b HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n",
        b"POST %b HTTP/1.1\r\nno colon\r\n\r\n",
        b"POST %b HTTP/1.1\r\nHost: localhost\r\nx: " + b"y" * 70_000 + b"\r\n\r\n",
        b"POST %b HTTP/9.9\r\nHost: localhost\r\n\r\n",
        b"POST %b\r\n\r\n",
        b"BREW %b HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST %b\xfc HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 %b\r\n\r\n",
        b"\x00\x01\x02\x03%b\xff\r\n\r\n",
    ],
)
async def test_bytes_that_are_no_http_get_an_answer_in_json_and_lose_the_connection(head: bytes, port: int) -> None:
    async with connected(port) as client:
        await client.send(head.replace(b"%b", b"/v1/completions"))
        answer = await client.answer()
        assert 400 <= answer.status < 500
        error_of(answer, openai_envelope, answer.status)
        assert b"Traceback" not in answer.body
        await client.closed()


async def test_the_gateway_still_answers_after_all_that(port: int) -> None:
    answer = await served(port, request("POST", DOORS[0].path, DOORS[0].ask()))
    assert answer.status == 200
