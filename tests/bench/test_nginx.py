"""The yardstick forwards the bench's traffic, whole and streamed."""

from functools import partial
from pathlib import Path

import pytest

from tests.bench import traffic
from tests.bench.load import Load, StreamCaller, WholeCaller, run_load
from tests.bench.nginx import nginx_path, running_nginx
from tests.support.http_scripts import json_answer, sse_answer
from tests.support.openai_wire import completion_frames
from tests.support.vendor import FakeVendor


async def test_nginx_forwards_over_kept_connections(tmp_path: Path) -> None:
    program = nginx_path()
    if program is None:
        pytest.skip("nginx is not installed")
    whole = traffic.request_bytes(traffic.request_body(stream=False), "sk")
    streamed = traffic.request_bytes(traffic.request_body(stream=True), "sk")
    async with FakeVendor(json_answer(200, {})) as vendor:
        with running_nginx(program, tmp_path, vendor.port) as (port, _):
            await run_load(port, Load(whole, 10, 1), WholeCaller)
            vendor.default = sse_answer(completion_frames(["a", "b"]))
            await run_load(port, Load(streamed, 10, 1), partial(StreamCaller, chunks=2))
        assert len(vendor.requests) == 20
        assert vendor.connections == 1
        assert vendor.requests[0].body == traffic.request_body(stream=False)
