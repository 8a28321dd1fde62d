"""A name that changes its address after it was judged: a call goes to exactly the address that was permitted, or
nowhere."""

import asyncio
import socket
from asyncio.selector_events import BaseSelectorEventLoop
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from providers.failure import FailureKind
from proxy.http_client.address_guard import Found, GuardedResolver
from proxy.http_client.http_transport import HttpTransport
from tests.proxy.kit.transport_calls import TARGET, call, failure, tidy_transport
from tests.support.http_scripts import json_answer
from tests.support.vendor import FakeVendor

PUBLIC, OTHER, INSIDE, METADATA = "93.184.215.14", "93.184.215.15", "127.0.0.1", "169.254.169.254"
STRANGER = replace(TARGET, allow_private=False)


@dataclass(slots=True)
class Names:
    """A resolver whose responses change, and the addresses of later connections."""

    answers: deque[Sequence[str]] = field(default_factory=deque)
    asked: int = 0
    connected: list[str] = field(default_factory=list)

    def answer(self, port: int) -> list[Found]:
        self.asked += 1
        hosts = self.answers.popleft() if len(self.answers) > 1 else self.answers[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, port)) for host in hosts]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    """The system's resolver is replaced, and every connection beyond this machine is recorded and refused."""
    made = Names()

    def look_up(self: GuardedResolver, host: str, port: int) -> asyncio.Future[list[Found]]:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[Found]] = loop.create_future()
        loop.call_soon(answer.set_result, made.answer(port))
        return answer

    connect = BaseSelectorEventLoop.sock_connect

    async def sock_connect(self: BaseSelectorEventLoop, sock: socket.socket, address: tuple[str, int]) -> None:
        made.connected.append(address[0])
        if address[0] != INSIDE:
            raise ConnectionRefusedError
        await connect(self, sock, address)

    monkeypatch.setattr(GuardedResolver, "_look_up", look_up)
    monkeypatch.setattr(BaseSelectorEventLoop, "sock_connect", sock_connect)
    return made


async def refused(transport: HttpTransport, vendor: FakeVendor) -> None:
    """Assert that a call of a public name reaches no server, in particular not the vendor inside."""
    kind = await failure(transport, f"https://rebinding.example:{vendor.port}/", STRANGER)
    assert kind is FailureKind.CONNECT
    assert vendor.connections == 0


@pytest.mark.parametrize("second", [INSIDE, METADATA])
async def test_a_call_goes_to_the_address_that_was_judged_and_not_to_the_name_s_next(names: Names, second: str) -> None:
    names.answers.extend([[PUBLIC], [second]])
    async with FakeVendor(json_answer(200, {})) as vendor, tidy_transport() as transport:
        await refused(transport, vendor)
    assert names.asked == 1
    assert set(names.connected) == {PUBLIC}


async def test_a_name_that_turned_inwards_is_refused_when_it_is_asked_again(
    names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    names.answers.extend([[PUBLIC], [INSIDE]])
    async with FakeVendor(json_answer(200, {})) as vendor, tidy_transport() as transport:
        await refused(transport, vendor)
        await refused(transport, vendor)
        assert names.asked == 1
        monkeypatch.setattr("proxy.http_client.address_guard.CACHED_SECONDS", 0.0)
        for resolver in transport.dialer.resolvers.values():
            resolver._cached.clear()
        await refused(transport, vendor)
    assert names.asked == 2
    assert set(names.connected) == {PUBLIC}


async def test_of_several_addresses_only_the_permitted_are_tried(names: Names) -> None:
    names.answers.append([INSIDE, PUBLIC, METADATA, OTHER])
    async with FakeVendor(json_answer(200, {})) as vendor, tidy_transport() as transport:
        await refused(transport, vendor)
    assert set(names.connected) == {PUBLIC, OTHER}


async def test_metadata_is_withheld_even_where_private_addresses_are_meant(names: Names) -> None:
    names.answers.append([METADATA, INSIDE])
    async with FakeVendor(json_answer(200, {})) as vendor, tidy_transport() as transport:
        response = await transport.open(call(f"http://inside.example:{vendor.port}/", TARGET), "req-1")
        assert response.status == 200
        assert names.connected == [INSIDE]
        assert vendor.connections == 1
