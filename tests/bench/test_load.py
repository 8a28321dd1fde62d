"""The load generator stops by itself and takes no wrong answer for a fast one; the fake upstream gives right ones."""

from collections.abc import Sequence
from functools import partial

import orjson
import pytest

from tests.bench import traffic
from tests.bench.load import Load, StreamCaller, WholeCaller, WrongAnswer, check_stream, run_load, whole_answer
from tests.bench.run import Plan, gateway_table, plan_from, running_upstream
from tests.support.http_scripts import json_answer, sse_answer
from tests.support.openai_wire import completion_frames
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Fin, Send

REQUEST = traffic.request_bytes(traffic.request_body(stream=False), "sk")
STREAM = traffic.request_bytes(traffic.request_body(stream=True), "sk")


def test_the_measured_bodies_have_the_sizes_of_the_known_figures() -> None:
    assert len(traffic.request_body(stream=False)) == len(traffic.request_body(stream=True)) == 2048
    _, _, body = traffic.answer_bytes().partition(b"\r\n\r\n")
    assert len(body) == 1200
    assert orjson.loads(body)["object"] == "text_completion"


def test_an_answer_is_whole_when_its_length_is_there() -> None:
    answer = traffic.answer_bytes()
    assert [size for size in range(len(answer) + 1) if whole_answer(answer[:size])] == [len(answer)]


@pytest.mark.parametrize("answer", [b"HTTP/1.1 401 No\r\ncontent-length: 0\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_a_refusal_or_an_answer_of_unknown_length_is_wrong(answer: bytes) -> None:
    with pytest.raises(WrongAnswer):
        whole_answer(answer)


def stream_of(texts: Sequence[str]) -> bytes:
    """A streamed answer, unframed."""
    return b"HTTP/1.1 200 OK\r\n\r\n" + b"".join(completion_frames(texts))


def test_a_stream_is_right_with_every_text_and_its_terminator() -> None:
    check_stream(stream_of(["a", "b"]), 2)


@pytest.mark.parametrize("answer", [stream_of(["a"]), stream_of(["a", "b"])[:-10], b"HTTP/1.1 502 Bad\r\n\r\n"])
def test_a_short_stream_is_wrong(answer: bytes) -> None:
    with pytest.raises(WrongAnswer):
        check_stream(answer, 2)


async def test_exactly_as_many_requests_are_sent_as_told() -> None:
    async with FakeVendor(json_answer(200, {})) as vendor:
        await run_load(vendor.port, Load(REQUEST, 10, 3), WholeCaller)
        assert len(vendor.requests) == 10
        assert vendor.connections == 3
        assert vendor.requests[0].body == traffic.request_body(stream=False)


async def test_streams_are_read_to_their_end() -> None:
    async with FakeVendor(sse_answer(completion_frames(["a", "b"]))) as vendor:
        await run_load(vendor.port, Load(STREAM, 4, 2, spread=0.001), partial(StreamCaller, chunks=2))
        assert len(vendor.requests) == 4


@pytest.mark.parametrize("answer", [json_answer(500, "no"), (Send(b"HTTP/1.1 200 OK\r\n"), Fin())])
@pytest.mark.parametrize("caller", [WholeCaller, partial(StreamCaller, chunks=2)])
async def test_a_wrong_answer_ends_the_load(answer: tuple[Send, ...], caller: type[WholeCaller]) -> None:
    async with FakeVendor(answer) as vendor:
        with pytest.raises(WrongAnswer):
            await run_load(vendor.port, Load(REQUEST, 1, 1), caller)


async def test_the_fake_upstream_answers_both_ways() -> None:
    plan = Plan(requests=0, connections=0, streams=0, chunks=3, pace=0.001, rounds=0)
    with running_upstream(plan) as upstream:
        await run_load(upstream.port, Load(REQUEST, 5, 2), WholeCaller)
        await run_load(upstream.port, Load(STREAM, 5, 2), partial(StreamCaller, chunks=3))


def test_the_command_line_sizes_the_plan() -> None:
    plan = plan_from(["--requests", "7", "--pace", "0.5"])
    assert (plan.requests, plan.pace, plan.rounds) == (7, 0.5, 3)


def test_the_table_has_the_teams_key_only_as_a_digest() -> None:
    table = gateway_table(1234)
    assert "sk-bench" not in table
    assert "127.0.0.1:1234/v1" in table
