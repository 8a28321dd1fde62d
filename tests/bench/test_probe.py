"""One response is read completely: its text must be the upstream's."""

import pytest

from tests.bench.load import WrongAnswer
from tests.bench.probe import expected_stream, probe
from tests.bench.traffic import Ask, chat_request
from tests.bench.vendors import OPENAI, WIRES, Wire
from tests.support.http_scripts import json_answer
from tests.support.looped import looped
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Send

SPOKEN = looped("wire", WIRES.values(), ids=list(WIRES))


@SPOKEN
def test_a_stream_is_what_all_others_have_to_be(wire: Wire) -> None:
    answer = wire.answer(Ask(chunks=65))
    expected = expected_stream(answer, wire, Ask(chunks=65))
    assert 65 <= expected.events <= 68
    assert expected.sent == len(answer)


@SPOKEN
def test_a_stream_without_one_of_its_chunks_is_wrong(wire: Wire) -> None:
    with pytest.raises(WrongAnswer):
        expected_stream(wire.answer(Ask(chunks=64)), wire, Ask(chunks=65))


async def test_the_vendors_own_text_is_asked_for() -> None:
    ask = Ask()
    async with FakeVendor((Send(OPENAI.answer(ask)),)) as vendor:
        assert (await probe(vendor.port, chat_request(ask), OPENAI, ask)).length == 1200
        vendor.default = json_answer(200, {"choices": []})
        with pytest.raises(WrongAnswer):
            await probe(vendor.port, chat_request(ask), OPENAI, ask)
        vendor.default = json_answer(500, "no")
        with pytest.raises(WrongAnswer):
            await probe(vendor.port, chat_request(ask), OPENAI, ask)
