"""The causes of failed connections over real sockets: reported to clients without the host, to operators with it."""

import asyncio
import errno
import json
import re
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest
from cryptography import x509

from providers.failure import Cause, Failure, FailureKind, UpstreamError
from providers.target import Target
from providers.vendor_credential import Authorities
from proxy.http_client.connect_failures import WithheldAddress, connect_failure, peer_of
from proxy.http_client.http_transport import UNANSWERED, HttpTransport
from tests.proxy.kit.gateway_rig import ask
from tests.proxy.kit.raw_client import exchange, request
from tests.proxy.kit.transport_calls import HASTY, TARGET, call, tidy_transport
from tests.proxy.kit.whole_gateway import port_of, table_before, up
from tests.support.authority import DAY, LOCAL, NOW, Authority
from tests.support.looped import looped
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Fin, Hang, Send

pytestmark = pytest.mark.smoke


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


async def failure(url: str, target: Target = TARGET) -> Failure:
    async with tidy_transport() as transport:
        return await _failure(transport, f"{url}/path?key=sk-canary", target)


async def _failure(transport: HttpTransport, url: str, target: Target) -> Failure:
    with pytest.raises(UpstreamError) as caught:
        await transport.open(call(url, target), "req-1")
    found = caught.value.failure
    host = peer_of(url).rpartition(":")[0]
    assert host not in found.message
    assert found.operator_message == f"{found.message.removesuffix('.')} ({peer_of(url)})."
    for secret in ("sk-canary", "sk-operator", "/path"):
        assert secret not in repr(found) + found.operator_message
    return found


async def test_a_port_that_nobody_listens_on_refuses() -> None:
    found = await failure(f"http://127.0.0.1:{closed_port()}")
    assert (found.kind, found.cause) == (FailureKind.CONNECT, Cause.REFUSED)


async def test_a_name_that_nobody_knows_is_not_resolved() -> None:
    found = await failure("https://nobody.invalid")
    assert (found.kind, found.cause, found.peer) == (FailureKind.CONNECT, Cause.DNS, "nobody.invalid:443")


async def test_a_name_that_leads_inwards_is_withheld() -> None:
    found = await failure("http://localhost:1", replace(TARGET, allow_private=False))
    assert (found.kind, found.cause) == (FailureKind.CONNECT, Cause.WITHHELD)


async def test_a_handshake_that_does_not_end_is_a_connection_that_took_too_long(vendor: FakeVendor) -> None:
    vendor.at_accept((Hang(),))
    found = await failure(f"https://127.0.0.1:{vendor.port}", HASTY)
    assert (found.kind, found.cause, found.unsent) == (FailureKind.TIMEOUT, Cause.TIMEOUT, True)


async def test_who_does_not_speak_tls_fails_its_handshake(vendor: FakeVendor) -> None:
    vendor.at_accept((Send(b"HTTP/1.1 400 Bad Request\r\n\r\n"), Fin()))
    found = await failure(f"https://127.0.0.1:{vendor.port}")
    assert (found.kind, found.cause) == (FailureKind.TLS, Cause.HANDSHAKE)


@asynccontextmanager
async def behind_tls(context: ssl.SSLContext) -> AsyncIterator[int]:
    """Yield the port of a server with a certificate."""
    server = await asyncio.get_running_loop().create_server(asyncio.Protocol, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]


OTHER = x509.DNSName("other.example")
STRANGERS: dict[Cause, Callable[[Authority, Path], ssl.SSLContext]] = {
    Cause.CERTIFICATE_EXPIRED: lambda own, folder: own.server(folder, *LOCAL, until=NOW - DAY),
    Cause.CERTIFICATE_HOST: lambda own, folder: own.server(folder, OTHER),
    Cause.CERTIFICATE_AUTHORITY: lambda own, folder: Authority().server(folder, *LOCAL),
}


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
@pytest.mark.parametrize("cause", STRANGERS)
async def test_what_is_wrong_with_a_certificate_is_told(tmp_path: Path, cause: Cause, host: str) -> None:
    own = Authority()
    trusting = replace(TARGET, authorities=Authorities(str(tmp_path), own.pem().decode()))
    async with behind_tls(STRANGERS[cause](own, tmp_path)) as port:
        found = await failure(f"https://{host}:{port}", trusting)
    assert (found.kind, found.cause) == (FailureKind.TLS, cause)


NUMBERS = {
    errno.EHOSTUNREACH: Cause.UNREACHABLE,
    errno.ENETUNREACH: Cause.UNREACHABLE,
    errno.ETIMEDOUT: Cause.TIMEOUT,
    errno.ECONNRESET: Cause.CLOSED,
    errno.EACCES: Cause.OTHER,
    None: Cause.OTHER,
}


@looped(("number", "cause"), NUMBERS.items())
def test_what_the_system_says_of_a_connection_is_kept(number: int | None, cause: Cause) -> None:
    found = connect_failure(OSError(number, "words of the system"), "http://10.0.0.7:8000/v1")
    assert (found.cause, found.peer) == (cause, "10.0.0.7:8000")
    assert "words of the system" not in found.operator_message


CODES = {9: Cause.CERTIFICATE_EARLY, 18: Cause.CERTIFICATE_AUTHORITY, 26: Cause.CERTIFICATE}


@looped(("code", "cause"), CODES.items())
def test_what_openssl_says_of_a_certificate_is_kept(code: int, cause: Cause) -> None:
    error = ssl.SSLCertVerificationError()
    error.verify_code = code
    assert connect_failure(error, "https://h").cause is cause


def test_a_withheld_address_and_a_failed_look_up_are_not_the_same() -> None:
    causes = [
        connect_failure(error, "http://h").cause for error in (WithheldAddress(None, ""), socket.gaierror(-2, ""))
    ]
    assert causes == [Cause.WITHHELD, Cause.DNS]


PEERS = {
    "https://user:sk-canary@h.example/v1?key=sk-canary": "h.example:443",
    "http://[::1]:8080/": "[::1]:8080",
    "http://h": "h:80",
}


@looped(("url", "peer"), PEERS.items())
def test_of_a_url_only_the_host_and_the_port_are_shown(url: str, peer: str) -> None:
    assert peer_of(url) == peer


async def test_the_operator_reads_host_and_cause_in_log_and_status_and_the_client_reads_no_host(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    port, log = closed_port(), BytesIO()
    table = (
        "version: 1\ndefaults: {allow_private: true, retries: {attempts: 2}, api_key: sk-canary}\n"
        "vendors: {v: {profile: openai_compatible}}\nmodels:\n  v/m:\n    deployments:\n"
        f"      a: {{base_url: 'http://127.0.0.1:{port}/v1'}}\n      b: {{base_url: 'https://nobody.invalid/v1'}}\n"
    )
    async with up(table, tmp_path, log) as app:
        answers = [await exchange(port_of(app.url), request("POST", "/v1/completions", ask("v/m"))) for _ in range(5)]
        status = await exchange(port_of(app.admin_url), request("GET", "/status"))
    assert (answers[0].status, answers[0].message) == (502, "The upstream's host name could not be resolved.")
    assert not any(b"127.0.0.1" in answer.body or b"invalid" in answer.body for answer in answers)
    line = json.loads(log.getvalue().splitlines()[0])
    refused, unresolved = line["attempts"]
    assert (refused["outcome"], refused["cause"]) == ("connect", "refused")
    assert refused["message"] == f"The upstream refused the connection (127.0.0.1:{port})."
    assert (unresolved["outcome"], unresolved["cause"]) == ("connect", "dns")
    assert unresolved["message"] == "The upstream's host name could not be resolved (nobody.invalid:443)."
    first, second = json.loads(status.body)["last_failures"]
    assert first.endswith(f"Z v/m/a: connect: The upstream refused the connection (127.0.0.1:{port}).")
    assert second.endswith("Z v/m/b: connect: The upstream's host name could not be resolved (nobody.invalid:443).")
    assert re.search(rf"v/m/a: cooldown of [\d.]+ s: connect: The upstream refused .*\(127.0.0.1:{port}\)", caplog.text)
    assert "sk-canary" not in caplog.text + log.getvalue().decode() + status.body.decode()


async def test_the_status_page_says_why_a_vendor_failed_that_hung_up(tmp_path: Path) -> None:
    async with FakeVendor((Fin(),)) as vendor, up(table_before(vendor), tmp_path) as app:
        await exchange(port_of(app.url), request("POST", "/v1/completions", ask("v/m")))
        status = await exchange(port_of(app.admin_url), request("GET", "/status"))
    (told,) = json.loads(status.body)["last_failures"]
    assert told.endswith(f"Z v/m/default: server: {UNANSWERED}")
