"""The bench of the response cache: its requests, and how it reads streams."""

from pathlib import Path

from config.load_config import load_text
from tests.bench.answer_cache import CASES, CacheCase, StreamCaller, lines
from tests.bench.load import Load, run_load
from tests.bench.programs.gateway import gateway_table
from tests.bench.readings import Reading
from tests.bench.upstream import RunningUpstream
from tests.support.http_scripts import sse_answer
from tests.support.openai_wire import chat_frames
from tests.support.vendor import FakeVendor


def test_the_first_gateway_of_each_kind_has_no_cache_and_the_others_have_one() -> None:
    upstream = RunningUpstream(pid=1, port=9, tls_port=9, authority=Path("none"))
    caches = []
    for case in CASES:
        table = gateway_table(upstream, "", model=case.model).replace(', ca_file: "none"', "")
        caches.append(load_text(table, "t.yaml", {}).config.models["bench/model"].cache is not None)
    assert caches == [False, True, True, True] * 2


def test_a_case_asks_the_cache_by_the_header_alone() -> None:
    plain, hit = CASES[0].request, CASES[3].request
    assert b"x-dragoman-cache: use\r\n" in hit
    assert hit.replace(b"x-dragoman-cache: use\r\n", b"") == plain


async def test_each_stream_is_read_to_its_end() -> None:
    async with FakeVendor(sse_answer(chat_frames(["one", "two"]))) as vendor:
        await run_load(vendor.port, Load(CacheCase("s", "", chunks=2).request, 4, 2), StreamCaller)
        assert len(vendor.requests) == 4


def test_each_figure_is_said_beside_the_one_without_a_cache() -> None:
    taken = {"no cache": [Reading(2.0, 1.0, 10_000), Reading(9.0, 1.0, 10_000)], "hit": [Reading(1.0, 1.0, 10_000)]}
    assert lines(taken) == [
        "no cache: 200.0 µs of CPU a request, 100.0%",
        "hit: 100.0 µs of CPU a request, 50.0%",
    ]
