"""F05 and F06: invalid certificates, and handshakes that do not end."""

import asyncio
import datetime
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, cast

from cryptography import x509
from typing_extensions import override

from proxy.http_client.dialer import tls
from tests.faults.fault_rig import Rig
from tests.faults.registry import fault
from tests.faults.request_outcomes import (
    ExpectedEnd,
    assert_answered_elsewhere,
    assert_fails_alone,
    consecutive_failures,
    unspent_retries,
)
from tests.faults.upstream_connections import FULL, HASTY, LATE, gone
from tests.support.authority import LOCAL, NOW, Authority
from tests.support.vendor_script import Fin, Hang, Script, Send

SECRET: Final = HASTY.replace("http://127.0.0.1:${ONE}", "https://localhost:${ONE}")

UNTRUSTED: Final = ExpectedEnd(502, "upstream_error", "tls", retry="false", heard=0)

STRANGERS: Final[tuple[Callable[[Authority, Path], ssl.SSLContext], ...]] = (
    lambda authority, folder: Authority().server(folder, *LOCAL),
    lambda authority, folder: authority.server(folder, x509.DNSName("other.example")),
    lambda authority, folder: authority.server(folder, *LOCAL, until=NOW - datetime.timedelta(hours=1)),
)
"""Certificates by an unknown authority, for another host, and expired."""


class Listener(asyncio.Protocol):
    """A vendor behind TLS that closes the connection on any bytes after the handshake."""

    def __init__(self) -> None:
        self.heard = b""

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    @override
    def data_received(self, data: bytes) -> None:
        self.heard += data
        self._transport.close()


@asynccontextmanager
async def behind_tls(port: int, context: ssl.SSLContext) -> AsyncIterator[Listener]:
    """Run a vendor at this port with this certificate."""
    made = Listener()
    server = await asyncio.get_running_loop().create_server(lambda: made, "127.0.0.1", port, ssl=context)
    try:
        yield made
    finally:
        server.close()
        await server.wait_closed()


def trust(rig: Rig, authority: Authority) -> None:
    """Make the gateway's connections trust certificates of this authority."""
    context = tls.__wrapped__()
    context.load_verify_locations(cadata=authority.pem().decode())
    rig.app.front.transport.dialer.trusted = context


@fault(5, SECRET)
async def certificate_that_proves_nothing(rig: Rig) -> None:
    authority, folder = Authority(), rig.path.parent
    trust(rig, authority)
    await gone(rig.one)
    for stranger in STRANGERS:
        async with behind_tls(rig.one.port, stranger(authority, folder)) as listener:
            await assert_fails_alone(rig, UNTRUSTED)
            await assert_answered_elsewhere(rig, UNTRUSTED)
            assert consecutive_failures(rig) == 2
            assert listener.heard == b""
        rig.forget()
    assert unspent_retries(rig) == FULL
    async with behind_tls(rig.one.port, authority.server(folder, *LOCAL)) as listener:
        await rig.ask("one/m")
        assert listener.heard.startswith(b"POST /v1/completions")


@fault(6, SECRET)
async def handshake_that_hangs(rig: Rig) -> None:
    rig.one.at_accept((Hang(),), (Hang(),))
    await assert_fails_alone(rig, LATE)
    await assert_answered_elsewhere(rig, LATE)
    await rig.one.connected(0)
    assert unspent_retries(rig) == FULL
    assert consecutive_failures(rig) == 2


@fault(6, SECRET)
async def plain_text_where_tls_was_expected(rig: Rig) -> None:
    plain: Script = (Send(b"HTTP/1.1 400 Bad Request\r\n\r\n"), Fin())
    rig.one.at_accept(plain, plain)
    await assert_fails_alone(rig, UNTRUSTED)
    await assert_answered_elsewhere(rig, UNTRUSTED)
    assert unspent_retries(rig) == FULL
    assert consecutive_failures(rig) == 2
