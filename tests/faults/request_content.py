"""F51 to F56: bodies that attack their parser, headers that would be split into several."""

import asyncio
import codecs
import time
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import cycle
from typing import Final

import orjson
import pytest

from config.problem import ConfigError
from providers.json_types import JsonObject, JsonValue
from proxy.process.load_table import Source
from tests.faults.check_answers import SURFACES, refusal, unprocessable
from tests.faults.fault_rig import OPERATOR_KEY, PATIENT, TABLE, Rig
from tests.faults.registry import single_fault
from tests.support.cpu_growth import ROUNDS, SLACK, YARDSTICK, seconds

MOST: Final = 10
"""The longest time for which a refused body may block the loop, as a multiple of reading the yardstick of
`cpu_growth`."""

CHATS: Final = {name: path.replace("completions", "chat/completions") for name, path in SURFACES.items()}


def asking(**raw: bytes) -> bytes:
    """Return a text completion's body with further fields, each the bytes of its value."""
    return b'{"model":"one/m","prompt":"hi"' + b"".join(b',"%b":%b' % (k.encode(), v) for k, v in raw.items()) + b"}"


EVERYWHERE: Final = tuple(SURFACES.values())


async def refused(rig: Rig, body: bytes, param: str | None = None, paths: tuple[str, ...] = EVERYWHERE) -> None:
    """Assert that the body is refused on these surfaces, and that no vendor receives it."""
    heard = len(rig.one.requests)
    for path in paths:
        answer = await rig.post(body, path)
        assert refusal(answer, path) == (unprocessable(path), "invalid_value"), answer.body
        assert param is None or str(answer.error()["param"]).split(".")[0] == param
    assert len(rig.one.requests) == heard


async def taken(rig: Rig, body: bytes, **expected: JsonValue) -> None:
    """Assert that the body is accepted on every surface, and that the vendor gets these fields of it."""
    for path in SURFACES.values():
        answer = await rig.post(body, path)
        assert answer.status == 200, answer.body
        sent = rig.one.requests[-1].json()
        assert isinstance(sent, dict)
        assert {name: sent.get(name) for name in expected} == expected


async def settled(rig: Rig) -> None:
    """Assert that no request ended as a fault of the gateway."""
    outcomes = {line["outcome"] for line in await rig.logged()}
    assert outcomes <= {"ok", "client_error"}


NESTS: Final = {"lists": (b"[", b"]"), "objects": (b'{"a":', b"}"), "both": (b'[{"a":', b"}]")}


@single_fault(51)
async def deep_nesting(rig: Rig) -> None:
    for opening, closing in NESTS.values():
        step = sum(opening.count(mark) for mark in (b"[", b"{"))
        # If two levels are added at a time, the level of the body itself makes an odd number.
        for depth, good in ((63, True), (65, False), (1023, False), (1025, False), (99_999, False)):
            levels = (depth - 1) // step
            nested = opening * levels + b"1" + closing * levels
            await (taken(rig, asking(x=nested)) if good else refused(rig, asking(x=nested)))
    lists = b"[" * 63 + b"]" * 63
    await taken(rig, asking(x=lists), x=orjson.loads(lists))
    await refused(rig, asking(x=b"[" + lists + b"]"))
    for name in ("guided_json", "inference_extra_params", "response_format", "logit_bias", "metadata"):
        await refused(rig, asking(**{name: b'{"a":' * 100 + b"1" + b"}" * 100}))
    await refused(rig, b"[" * 100_000)
    await settled(rig)


@dataclass(slots=True)
class Lag:
    """The largest CPU time of the loop's thread between two samples, in seconds."""

    worst: float = 0.0
    looked: float = field(default_factory=time.thread_time)

    def look(self) -> None:
        now = time.thread_time()
        self.worst, self.looked = max(self.worst, now - self.looked), now


@asynccontextmanager
async def lagging() -> AsyncIterator[Lag]:
    """Sample the loop for the duration of the block, including its last moment: the loop may be blocked just before the
    block ends."""
    lag = Lag()

    async def tick() -> None:
        while True:
            await asyncio.sleep(0.001)
            lag.look()

    ticking = asyncio.ensure_future(tick())
    try:
        yield lag
    finally:
        lag.look()
        ticking.cancel()


async def refused_briefly(rig: Rig, body: bytes, path: str) -> None:
    """Assert that the body is refused, and that in at least one of several rounds it blocks the loop for no longer than
    MOST readings of the yardstick. A busy machine delays some rounds, but not every round."""
    worst = measure = float("inf")
    for _ in range(ROUNDS):
        measure = min(measure, seconds(lambda: orjson.loads(YARDSTICK)), seconds(lambda: orjson.loads(YARDSTICK)))
        async with lagging() as lag:
            await refused(rig, body, paths=(path,))
        worst = min(worst, lag.worst)
        if worst <= MOST * measure + SLACK:
            return
    raise AssertionError(f"{1000 * worst:.1f} ms of the loop are {worst / measure:.0f} times the measure, not {MOST}")


BOMBS: Final = {
    "a million objects": b"[" + b"{}," * 1_000_000 + b"1]",
    "10 MB of objects": b"[" + b"{}," * 3_400_000 + b"1]",
    "lists": b"[" + b"[]," * 200_000 + b"1]",
    "numbers": b"[" + b"1," * 300_000 + b"1]",
    "members": b"{" + b'"a":1,' * 300_000 + b'"b":1}',
    "quotes": b"[" + b'"",' * 300_000 + b"1]",
}


@single_fault(52, PATIENT)
async def more_elements_than_memory_is_worth(rig: Rig) -> None:
    for bomb, path in zip(BOMBS.values(), cycle(EVERYWHERE), strict=False):
        await refused_briefly(rig, asking(x=bomb), path)
    await taken(rig, asking(x=b"[" + b"{}," * 99_000 + b"1]"))
    # aiohttp warns about a body of this size
    warnings.simplefilter("ignore", ResourceWarning)
    await taken(rig, asking(x=b'"' + b"{[," * 400_000 + b'"'))
    await settled(rig)


@single_fault(53)
async def keys_given_twice(rig: Rig) -> None:
    for name, first, second in (
        ("model", b'"cheap"', b'"one/m"'),
        ("stream", b"false", b"true"),
        ("prompt", b'"hi"', b'"ho"'),
        ("max_tokens", b"1", b"9999"),
        ("user", b'"a"', b'"b"'),
        ("inference_extra_params", b"{}", b'{"x":1}'),
    ):
        for again in (name.encode(), b"\\u00%02x" % ord(name[0]) + name[1:].encode()):
            body = asking(**({} if name in ("model", "prompt") else {name: first}))
            await refused(rig, body[:-1] + b',"%b":%b}' % (again, second), name)
            await refused(rig, body[:-1] + b',"%b":%b}' % (again, first), name)
    for path in CHATS.values():
        talk = b'[{"role":"user","content":"hi"}]'
        answer = await rig.post(b'{"model":"one/m","messages":%b,"messages":%b}' % (talk, talk), path)
        assert refusal(answer, path) == (unprocessable(path), "invalid_value")
        assert answer.error()["param"] == "messages"
    assert rig.one.requests == []
    await taken(rig, asking(x=b"1")[:-1] + b',"x":2}', x=2)
    await settled(rig)


NO_NUMBERS: Final = (
    *(b"NaN", b"Infinity", b"-Infinity", b"nan", b"1e999", b"-1e999", b"01", b"+1", b".5", b"1.", b"0x10", b"1_000"),
    *(b"18446744073709551616", b"-9223372036854775809", b"9" * 20, b"9" * 4301, b"-" + b"9" * 5000),
)
NUMBERS: Final = (
    *(b"9007199254740993", b"18446744073709551615", b"-9223372036854775808", b"9223372036854775807", b"0", b"-0.0"),
    *(b"0.1", b"1e-7", b"1e22", b"1.7976931348623157e308", b"5e-324", b"1E5", b"1.10"),
)


@single_fault(54)
async def numbers_and_encodings_that_parsers_read_differently(rig: Rig) -> None:
    for number in NO_NUMBERS:
        await refused(rig, asking(x=number))
        await refused(rig, asking(x=b'{"a":[%b]}' % number))
        await refused(rig, asking(temperature=number))
        await refused(rig, asking(seed=number))
    values = [orjson.loads(number) for number in NUMBERS]
    texts: list[JsonValue] = ["", "\u2028\u2029\x7f\x00", "\U0001f600", "e\u0301", "\ufeff", '\\"', None, True]
    texts.append({"": []})
    await taken(rig, asking(x=b"[" + b",".join(NUMBERS) + b"]", y=orjson.dumps(texts)), x=values, y=texts)
    assert all(b"9007199254740993,18446744073709551615," in received.body for received in rig.one.requests)
    plain, mark = asking(), codecs.BOM_UTF8
    await taken(rig, mark + plain)
    for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp037"):
        await refused(rig, plain.decode().encode(encoding))
    for body in (b"", b" ", b"null", b"1", b'"a"', b"[]", plain + b"x", plain * 2, plain[:-1], mark * 2 + plain):
        await refused(rig, body)
    await refused(rig, asking(x=b'"\xff"'))
    await refused(rig, asking(x=b'"\xed\xa0\x80"'))
    await refused(rig, asking(x=b'"\xc0\x80"'))
    await settled(rig)


@single_fault(55)
async def lone_surrogates(rig: Rig) -> None:
    for lone in (rb'"\ud800"', rb'"\udfff"', rb'"a\ud83d"', rb'"\ude00\ud83d"', rb'"\ud83d\u0041"', rb'"\uD800\n"'):
        for name in ("x", "user", "stop", "suffix"):
            await refused(rig, asking(**{name: lone}))
        await refused(rig, asking().replace(b'"hi"', lone))
        await refused(rig, asking().replace(b'"one/m"', lone))
        await refused(rig, asking()[:-1] + b",%b:1}" % lone)
        await refused(rig, asking(inference_extra_params=b'{"x":%b}' % lone))
    await taken(rig, asking(x=rb'"\ud83d\ude00"'), x="\U0001f600")
    await settled(rig)


HARMFUL: Final = (
    *(chr(code) for code in (*range(0x20), 0x7F)),
    *("\x80", "\u010a", "\u2028", "\u560a\u560d", "\U0001f600"),
)
"""Single characters that no header may contain. Some become the bytes of CR or LF when they are truncated to a byte."""

LATIN: Final = ("\xa0", "\xe9")
"""Characters that only the operator may write into a header."""


NOT_THEIRS: Final = (
    *("Host", "Content-Length", "Transfer-Encoding", "Connection", "Authorization", "X-Api-Key", "api-key", "Cookie"),
    *("X-Forwarded-For", "Expect", "Content-Type", "X-Amz-Security-Token", "x-request-id", "Accept-Encoding"),
)


async def injected(rig: Rig, headers: JsonObject) -> None:
    """Assert that these extra headers are refused on every surface."""
    await refused(rig, asking(inference_extra_headers=orjson.dumps(headers)), "inference_extra_headers")


@single_fault(56)
async def headers_that_would_be_more_than_one(rig: Rig) -> None:
    for character in (*HARMFUL, *LATIN):
        await injected(rig, {"x-trace": f"a{character}b"})
        await injected(rig, {"x-trace": f"a{character}Authorization: Bearer x"})
        await injected(rig, {f"x-tr{character}ace": "a"})
    values: list[JsonValue] = ["x" * 9 * 1024, 1, None, ["a"], {"a": "b"}, True]
    for value in values:
        await injected(rig, {"x-trace": value})
    for name in ("", " ", "x trace", "x:trace", "x_trace", "x" * 5000, *NOT_THEIRS):
        await injected(rig, {name: "a"})
    await injected(rig, {f"x-{number}": "a" for number in range(33)})
    assert rig.one.requests == []
    await taken(rig, asking(inference_extra_headers=b'{"traceparent":"00-ab-cd-01"}'))
    assert {received.header("traceparent") for received in rig.one.requests} == {"00-ab-cd-01"}
    assert {received.header("authorization") for received in rig.one.requests} == {f"Bearer {OPERATOR_KEY}"}
    await settled(rig)


@single_fault(56)
async def headers_of_the_table_that_would_be_more_than_one(rig: Rig) -> None:
    """Such headers are refused when the configuration is read, so that it does not become current."""
    for character in (*HARMFUL, "x" * 9 * 1024):
        written = orjson.dumps(f"a{character}b").decode()
        section = f"  headers: {{x-own: {written}}}\n"
        rig.path.write_text(TABLE.replace("defaults:\n", f"defaults:\n{section}", 1), encoding="utf-8")
        with pytest.raises(ConfigError) as caught:
            Source(rig.path, {"KEY": "k", "ONE": "1", "TWO": "2"}).load()
        (problem,) = caught.value.problems
        assert problem.path.endswith("headers.x-own") or problem.message.endswith("is not allowed in YAML")
        assert written[1:-1] not in str(caught.value)
