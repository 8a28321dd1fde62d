"""Descriptors that run out: a process with few of them, whose clients it outlives, on both event loops."""

import asyncio
import errno
import logging
import resource
from pathlib import Path

import aiohttp
import pytest

from providers.failure import FailureKind, UpstreamError
from providers.unified import JsonObject
from proxy.descriptors import TOLD_EVERY, LoopComplaints, allow_all, lacking
from proxy.upstream import HttpTransport
from tests.proxy.door import call
from tests.proxy.virtual_time import run
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.openai_wire import completion
from tests.support.vendor import FakeVendor
from tests.support.wire import json_answer


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_a_process_or_a_system_without_descriptors_lacks_them(number: int) -> None:
    assert lacking(OSError(number, "gone"))


@pytest.mark.parametrize("error", [OSError(), OSError(errno.ECONNREFUSED, "no"), ConnectionResetError()])
def test_other_faults_are_no_lack(error: OSError) -> None:
    assert not lacking(error)


def test_a_lack_is_told_once_in_ten_seconds_and_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        complain = LoopComplaints(logging.getLogger("tests.descriptors"))
        for _ in range(1024):
            complain(loop, {"message": "accept", "exception": OSError(errno.EMFILE, "gone")})
        await asyncio.sleep(TOLD_EVERY)
        complain(loop, {"message": "accept", "exception": OSError(errno.ENFILE, "gone")})

    run(main())
    assert caplog.messages == [
        "no connection can be accepted: Too many open files",
        "no connection can be accepted: Too many open files in system",
    ]
    assert all(record.exc_info is None for record in caplog.records)


def test_everything_else_that_a_loop_complains_of_is_told_as_always(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(LoopComplaints(logging.getLogger("tests.descriptors")))
        loop.call_exception_handler({"message": "a task broke", "exception": ValueError("canary")})
        loop.call_exception_handler({"message": "nothing was raised"})

    run(main())
    assert [record.name for record in caplog.records] == ["asyncio", "asyncio"]
    assert caplog.messages[0].startswith("a task broke")


def test_a_listener_that_is_closed_while_descriptors_lack_is_no_complaint(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        complain = LoopComplaints(logging.getLogger("tests.descriptors"))
        closed = {"message": "Exception in callback", "exception": OSError(errno.EBADF, "closed")}
        complain(loop, closed)
        complain(loop, {"message": "accept", "exception": OSError(errno.EMFILE, "gone")})
        await asyncio.sleep(1)
        complain(loop, closed)
        await asyncio.sleep(9)
        complain(loop, closed)

    run(main())
    assert [record.name for record in caplog.records] == ["asyncio", "tests.descriptors", "asyncio"]


def test_the_limit_is_raised_to_what_the_system_grants() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))
        assert allow_all() == hard
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_f68_a_call_that_finds_no_descriptor_is_the_gateways_own_lack(
    transport: HttpTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broke(*args: object, **kwargs: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr("aiohttp.connector.aiohappyeyeballs.start_connection", broke)
    with pytest.raises(UpstreamError) as caught:
        await transport.open(call("http://127.0.0.1:9/v1"), "id")
    failure = caught.value.failure
    assert (failure.kind, failure.unsent, failure.retry_after) == (FailureKind.BUSY, True, 1.0)


FEW = 64
CUSTOMIZE = f"import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, ({FEW}, {FEW}))\n"
LOOPS = {"asyncio": "", "uvloop": "import asyncio, uvloop\nasyncio.run = uvloop.run\n"}

TABLE = """\
version: 1
vendors:
  v: {profile: openai_compatible, base_url: "http://127.0.0.1:PORT/v1", allow_private: true}
models: {v/m: {}}
"""
ASK = {"model": "v/m", "prompt": "hi"}


async def answered(http: aiohttp.ClientSession, gateway: RunningGateway) -> tuple[int, JsonObject]:
    """Status and body of a completion; status 0 where there was no answer."""
    try:
        async with http.post(f"{gateway.url}/v1/completions", json=ASK) as answer:
            return answer.status, await answer.json()
    except aiohttp.ClientConnectionError:
        return 0, {}


@pytest.mark.parametrize("loop", LOOPS)
async def test_f68_out_of_descriptors_those_who_reach_the_gateway_get_503_and_later_all_are_served(
    loop: str, tmp_path: Path
) -> None:
    if loop == "uvloop":
        pytest.importorskip("uvloop")
    (tmp_path / "sitecustomize.py").write_text(CUSTOMIZE + LOOPS[loop])
    environment = {"PYTHONPATH": str(tmp_path)}
    async with (
        FakeVendor(json_answer(200, completion("hello"), [("connection", "close")])) as vendor,
        aiohttp.ClientSession() as http,
        running_gateway(TABLE.replace("PORT", str(vendor.port)), tmp_path, environment) as gateway,
    ):
        assert (await answered(http, gateway))[0] == 200
        host, _, port = gateway.url.rpartition("//")[2].partition(":")
        idle = [await asyncio.open_connection(host, int(port)) for _ in range(FEW)]
        while (refusal := await answered(http, gateway))[0] == 200:
            pass
        status, body = refusal
        assert (status, error_of(body)["code"]) == (503, "overloaded")
        for _, writer in idle:
            writer.transport.abort()
        while (await answered(http, gateway))[0] != 200:  # noqa: ASYNC110 - only asking tells
            await asyncio.sleep(0.05)
        async with aiohttp.ClientSession() as another:
            assert (await answered(another, gateway))[0] == 200
        told = gateway.messages().splitlines()
        assert len([line for line in told if "no connection can be accepted" in line]) <= 1
        assert len(told) < 10


def error_of(body: JsonObject) -> JsonObject:
    """The error object of the envelope."""
    error = body["error"]
    assert isinstance(error, dict)
    return error
