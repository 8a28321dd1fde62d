"""A lack of file descriptors is logged in one line, and recognised by its error."""

import asyncio
import errno
import logging
import resource

import pytest

from providers.failure import FailureKind, UpstreamError
from proxy.http_client.http_transport import HttpTransport
from proxy.process.file_descriptors import (
    CLOSE_IDLE_EVERY,
    LOGGED_EVERY,
    AcceptFailureLog,
    client_share,
    no_descriptor_left,
    raise_limit,
    when_exhausted,
)
from tests.proxy.kit.transport_calls import call
from tests.proxy.kit.virtual_time import run
from tests.support.looped import looped

pytestmark = pytest.mark.smoke


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_a_process_or_a_system_without_descriptors_lacks_them(number: int) -> None:
    assert no_descriptor_left(OSError(number, "gone"))


@looped("error", [OSError(), OSError(errno.ECONNREFUSED, "no"), ConnectionResetError()])
def test_other_faults_are_no_lack(error: OSError) -> None:
    assert not no_descriptor_left(error)


def test_a_lack_is_told_once_in_ten_seconds_and_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        complain = AcceptFailureLog(logging.getLogger("tests.descriptors"))
        for _ in range(1024):
            complain(loop, {"message": "accept", "exception": OSError(errno.EMFILE, "gone")})
        await asyncio.sleep(LOGGED_EVERY)
        complain(loop, {"message": "accept", "exception": OSError(errno.ENFILE, "gone")})

    run(main())
    assert caplog.messages == [
        "no connection can be accepted: Too many open files",
        "no connection can be accepted: Too many open files in system",
    ]
    assert all(record.exc_info is None for record in caplog.records)


def test_where_no_connection_can_be_accepted_room_is_made_but_not_for_each_that_waits() -> None:
    made: list[float] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        when_exhausted(lambda: None)  # an event loop that is not the gateway's
        loop.set_exception_handler(AcceptFailureLog(logging.getLogger("tests.descriptors")))
        when_exhausted(lambda: made.append(loop.time()))
        for _ in range(2):
            for _ in range(100):
                loop.call_exception_handler({"message": "accept", "exception": OSError(errno.EMFILE, "gone")})
            await asyncio.sleep(CLOSE_IDLE_EVERY)

    run(main())
    assert len(made) == 2


def test_everything_else_that_a_loop_complains_of_is_told_as_always(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(AcceptFailureLog(logging.getLogger("tests.descriptors")))
        loop.call_exception_handler({"message": "a task broke", "exception": ValueError("canary")})
        loop.call_exception_handler({"message": "nothing was raised"})

    run(main())
    assert [record.name for record in caplog.records] == ["asyncio", "asyncio"]
    assert caplog.messages[0].startswith("a task broke")


def test_a_listener_that_is_closed_while_descriptors_lack_is_no_complaint(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        complain = AcceptFailureLog(logging.getLogger("tests.descriptors"))
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
        assert raise_limit() == hard
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_f68_a_call_that_finds_no_descriptor_is_the_gateways_own_lack(
    transport: HttpTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broke(*args: object, **kwargs: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr("aiohappyeyeballs.start_connection", broke)
    with pytest.raises(UpstreamError) as caught:
        await transport.open(call("http://127.0.0.1:9/v1"), "id")
    failure = caught.value.failure
    assert (failure.kind, failure.unsent, failure.retry_after) == (FailureKind.BUSY, True, 1.0)


@looped(("granted", "share"), [(10, 16), (256, 96), (1024, 480)])
def test_clients_leave_each_of_them_a_descriptor_for_its_vendor(granted: int, share: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (granted, hard))
        assert client_share() == share
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
