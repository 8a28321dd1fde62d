"""The load that stops after a number of requests rejects wrong responses."""

from collections.abc import Sequence

import pytest

from tests.bench.load import Load, WholeCaller, WrongAnswer, run_load, whole_answer
from tests.bench.traffic import Ask, chat_body, chat_request
from tests.bench.vendors import OPENAI
from tests.support.http_scripts import json_answer
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Fin, Send

REQUEST = chat_request(Ask())


def test_an_answer_is_whole_when_its_length_is_there() -> None:
    answer = OPENAI.answer(Ask())
    assert [size for size in range(len(answer) + 1) if whole_answer(answer[:size])] == [len(answer)]


@pytest.mark.parametrize("answer", [b"HTTP/1.1 401 No\r\ncontent-length: 0\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_a_refusal_or_an_answer_of_unknown_length_is_wrong(answer: bytes) -> None:
    with pytest.raises(WrongAnswer):
        whole_answer(answer)


async def test_exactly_as_many_requests_are_sent_as_told() -> None:
    async with FakeVendor(json_answer(200, {})) as vendor:
        await run_load(vendor.port, Load(REQUEST, 10, 3), WholeCaller)
        assert len(vendor.requests) == 10
        assert vendor.connections == 3
        assert vendor.requests[0].body == chat_body(Ask())


@pytest.mark.parametrize("answer", [json_answer(500, "no"), (Send(b"HTTP/1.1 200 OK\r\n"), Fin())])
async def test_a_wrong_answer_ends_the_load(answer: Sequence[Send]) -> None:
    async with FakeVendor(tuple(answer)) as vendor:
        with pytest.raises(WrongAnswer):
            await run_load(vendor.port, Load(REQUEST, 1, 1), WholeCaller)
