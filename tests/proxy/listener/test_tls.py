"""The public listener with TLS: the settings of a configuration, and certificates that are exchanged while
connections are open."""

import asyncio
import datetime
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock, patch

import aiohttp
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from config.problem import ConfigError
from proxy.listener import tls as tls_module
from proxy.listener.tls import Presented, as_read
from proxy.process import shutdown as ending_module
from proxy.process.assemble_app import WholeGateway
from proxy.process.load_table import Source
from proxy.process.shutdown import drain
from tests.proxy.kit.gateway_rig import ask
from tests.proxy.kit.raw_client import RawClient, request
from tests.proxy.kit.whole_gateway import ANY, MOCK, REST, START, port_of, table_before
from tests.proxy.kit.whole_gateway import up as up_on
from tests.support.authority import DAY, LOCAL, NOW, Authority
from tests.support.gateway import SERVER, running_gateway
from tests.support.http_scripts import json_answer
from tests.support.openai_wire import completion
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Until

TLS = "server: {tls: {cert: cert.pem, key: key.pem}}\n"


def write(folder: Path, pair: tuple[bytes, bytes]) -> None:
    for name, content in zip(("cert.pem", "key.pem"), pair, strict=True):
        (folder / name).write_bytes(content)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    made = Authority()
    write(tmp_path, made.pair(*LOCAL))
    return made


@asynccontextmanager
async def running_tls(text: str, folder: Path) -> AsyncIterator[WholeGateway]:
    """Run the gateway with TLS."""
    async with up_on(text + TLS, folder, listen=ANY) as app:
        yield app


def trusting(authority: Authority) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=authority.pem().decode())
    context.set_alpn_protocols(["http/1.1"])
    return context


@asynccontextmanager
async def connected(port: int, context: ssl.SSLContext, host: str = "localhost") -> AsyncIterator[RawClient]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=host)
    try:
        yield RawClient(reader, writer)
    finally:
        writer.transport.abort()


def shown(client: RawClient) -> bytes:
    found: bytes = client.writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    return found


def certificate(folder: Path) -> bytes:
    """Write the certificate beside the config file, in the same form."""
    return ssl.PEM_cert_to_DER_cert((folder / "cert.pem").read_text())


@pytest.mark.smoke
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
async def test_a_client_that_trusts_the_authority_is_served(authority: Authority, tmp_path: Path, host: str) -> None:
    # An IP address is never sent as a name (RFC 6066, 3), so the second client sends none.
    async with running_tls(MOCK, tmp_path) as app, connected(port_of(app.url), trusting(authority), host) as client:
        assert app.url.startswith("https://127.0.0.1:")
        assert app.admin_url.startswith("http://127.0.0.1:")
        await client.send(request("POST", "/v1/completions", ask("mock/echo")))
        assert (await client.answer()).status == 200
        await client.send(request("POST", "/v1/completions", ask("mock/echo", stream=True)))
        assert (await client.answer()).whole
        assert client.writer.get_extra_info("ssl_object").selected_alpn_protocol() == "http/1.1"


@pytest.mark.smoke
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion")
async def test_no_tls_before_1_2_is_spoken(authority: Authority, tmp_path: Path) -> None:
    context = trusting(authority)
    context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    context.set_ciphers("DEFAULT@SECLEVEL=0")
    async with running_tls(MOCK, tmp_path) as app:
        for version, spoken in ((ssl.TLSVersion.TLSv1_2, True), (ssl.TLSVersion.TLSv1_1, False)):
            context.maximum_version = version
            try:
                async with connected(port_of(app.url), context):
                    assert spoken
            except (ssl.SSLError, ConnectionResetError):
                assert not spoken


async def test_plain_http_gets_no_answer_of_the_gateway_s(authority: Authority, tmp_path: Path) -> None:
    async with running_tls(MOCK, tmp_path) as app:
        reader, writer = await asyncio.open_connection("127.0.0.1", port_of(app.url))
        writer.write(request("POST", "/v1/completions", ask("mock/echo")))
        assert b"HTTP" not in await reader.read()
        writer.close()
        async with connected(port_of(app.url), trusting(authority)) as client:
            await client.send(request("GET", "/v1/models"))
            assert (await client.answer()).status == 200


async def test_a_client_that_does_not_shake_hands_is_dropped(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_module, "HANDSHAKE_WAIT", 0.05)
    async with running_tls(MOCK, tmp_path) as app:
        reader, writer = await asyncio.open_connection("127.0.0.1", port_of(app.url))
        assert await reader.read() == b""
        writer.close()


async def test_a_client_that_does_not_read_holds_its_writer_up_as_soon_as_a_plain_one(
    authority: Authority, tmp_path: Path
) -> None:
    async with running_tls(MOCK, tmp_path) as app, connected(port_of(app.url), trusting(authority)) as client:
        await client.send(request("GET", "/v1/models"))
        await client.answer()
        (transport,) = app.front.public._connections.values()
        assert transport.get_write_buffer_limits()[1] == 64 * 1024


# Exchanged while the gateway runs -------------------------------------------------------------------------------------


async def test_a_reload_shows_new_connections_the_new_certificate_alone(authority: Authority, tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with (
        FakeVendor((START, Until(gate), *REST)) as vendor,
        running_tls(table_before(vendor), tmp_path) as app,
        connected(port_of(app.url), trusting(authority)) as streaming,
    ):
        old = certificate(tmp_path)
        assert shown(streaming) == old
        await streaming.send(request("POST", "/v1/completions", ask("v/m", stream=True)))
        await streaming.head()
        write(tmp_path, authority.pair(*LOCAL))
        assert not (await app.reloader.reload()).problems
        async with connected(port_of(app.url), trusting(authority)) as late:
            assert shown(late) == certificate(tmp_path) != old
        gate.set()
        body, whole = await streaming.chunks()
        assert whole
        assert body.endswith(b"[DONE]\n\n")


def test_what_was_read_is_what_is_loaded_whatever_became_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "cert.pem"
    path.write_bytes(b"other")
    with as_read(path, {path: b"as it was read"}) as name, open(name, "rb") as file:
        assert file.read() == b"as it was read"


@pytest.mark.parametrize("memory", [{}, {"memfd_create": Mock(side_effect=PermissionError)}], ids=["none", "forbidden"])
def test_without_files_in_memory_it_is_the_file_itself(tmp_path: Path, memory: dict[str, Mock]) -> None:
    path = tmp_path / "cert.pem"
    with patch("proxy.listener.tls.os", SimpleNamespace(**memory)), as_read(path, {path: b"as it was read"}) as name:
        assert name == path


async def test_a_file_that_is_no_pair_changes_nothing_and_is_told(authority: Authority, tmp_path: Path) -> None:
    async with running_tls(MOCK, tmp_path) as app:
        old = certificate(tmp_path)
        digest = app.front.live.snapshot.digest
        (tmp_path / "cert.pem").write_bytes(authority.pair(*LOCAL)[0])
        result = await app.reloader.reload()
        assert [problem.path for problem in result.problems] == ["server.tls.key"]
        assert result.digest == digest
        async with connected(port_of(app.url), trusting(authority)) as client:
            assert shown(client) == old


def test_a_plain_listener_stays_plain(authority: Authority, tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(MOCK + TLS)
    fresh = Source(tmp_path / "t.yaml", {}).load().tls
    assert fresh is not None
    presented = Presented(None)
    presented.exchange(fresh)
    assert presented.secured() == {}


# The drain -----------------------------------------------------------------------------------------------------------


async def test_whoever_is_connected_when_the_listener_closes_shakes_hands_and_is_answered(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ending_module, "SETTLE", 0.5)

    def talk(client: socket.socket) -> bytes:
        with trusting(authority).wrap_socket(client, server_hostname="localhost") as secured:
            secured.sendall(request("GET", "/v1/models"))
            return secured.recv(65536)

    async with running_tls(MOCK, tmp_path) as app, AsyncExitStack() as stack:
        address = ("127.0.0.1", port_of(app.url))
        silent = stack.enter_context(socket.create_connection(address))
        waiting = [stack.enter_context(socket.create_connection(address)) for _ in range(5)]
        answers = [asyncio.create_task(asyncio.to_thread(talk, client)) for client in waiting]
        await drain(app.front, 0.0, 60.0)
        for answer in answers:
            assert (await answer).startswith(b"HTTP/1.1 200 OK\r\n")
        assert await asyncio.to_thread(silent.recv, 1) == b""


# Valid settings -------------------------------------------------------------------------------------------------------


def config_error(folder: Path) -> list[str]:
    """Return the error of the configuration with these files, from its line number on."""
    path = folder / "t.yaml"
    path.write_text(MOCK + TLS)
    with pytest.raises(ConfigError) as caught:
        Source(path, {}).load_to_serve()
    return [str(problem).removeprefix(f"{path}:") for problem in caught.value.problems]


def encrypted(key: bytes) -> bytes:
    return load_pem_private_key(key, None).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"canary")
    )


CERT, KEY = "4:22 server.tls.cert: ", "4:37 server.tls.key: "
MISSING = "cannot read the file: No such file or directory"
WRONG: dict[str, tuple[Callable[[bytes, bytes], tuple[bytes | None, bytes | None]], list[str]]] = {
    "missing": (lambda cert, key: (None, None), [CERT + MISSING, KEY + MISSING]),
    "no key": (lambda cert, key: (cert, None), [KEY + MISSING]),
    "no certificate in it": (
        lambda cert, key: (key, key),
        [CERT + "the file holds no certificate; it must be PEM, with "],
    ),
    "a broken certificate": (
        lambda cert, key: (cert.replace(b"MII", b"AAA", 1), key),
        [CERT + "the file holds a certificate that cannot be read"],
    ),
    "no key in it": (lambda cert, key: (cert, cert), [KEY + "the file holds no private key that can be read"]),
    "nothing in it": (lambda cert, key: (cert, b""), [KEY + "the file holds no private key that can be read"]),
    "another's key": (
        lambda cert, key: (cert, Authority().pair(*LOCAL)[1]),
        [KEY + "is not the key of the first certificate in cert"],
    ),
    "a key of another kind": (
        lambda cert, key: (
            cert,
            rsa.generate_private_key(65537, 2048).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        ),
        [KEY + "is not the key of the first certificate in cert"],
    ),
    "an encrypted key": (
        lambda cert, key: (cert, encrypted(key)),
        [KEY + "the key is encrypted, but the gateway cannot ask for its passphrase"],
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_files_that_are_no_pair_are_refused_where_named(authority: Authority, tmp_path: Path, wrong: str) -> None:
    make, expected = WRONG[wrong]
    pair = (tmp_path / "cert.pem", tmp_path / "key.pem")
    for path, content in zip(pair, make(*(path.read_bytes() for path in pair)), strict=True):
        path.unlink()
        if content is not None:
            path.write_bytes(content)
    told = config_error(tmp_path)
    assert [each[: len(start)] for each, start in zip(told, expected, strict=True)] == expected
    assert "canary" not in "".join(told)


def test_a_certificate_too_weak_for_tls_is_refused_as_such(authority: Authority, tmp_path: Path) -> None:
    weak = rsa.generate_private_key(65537, 1024)  # noqa: S505 - which is the point
    cert = authority.signed(weak, *LOCAL).public_bytes(Encoding.PEM)  # type: ignore[arg-type] # of another kind
    write(tmp_path, (cert, weak.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())))
    assert config_error(tmp_path) == [CERT + "the certificate is too weak for TLS today: EE_KEY_TOO_SMALL"]


@pytest.mark.parametrize(
    ("left", "told"),
    [
        (datetime.timedelta(days=30), []),
        (datetime.timedelta(days=3, hours=1), ["the certificate expires in 3 days"]),
        (-DAY, ["the certificate has expired"]),
    ],
)
def test_a_certificate_that_ends_is_a_warning(
    authority: Authority, tmp_path: Path, left: datetime.timedelta, told: list[str]
) -> None:
    write(tmp_path, authority.pair(*LOCAL, until=NOW + left))
    path = tmp_path / "t.yaml"
    path.write_text(MOCK + TLS)
    table = Source(path, {}).load_to_serve()
    assert [str(warning) for warning in table.warnings] == [f"{path}:{CERT}{each}" for each in told]


def test_a_key_that_anybody_may_change_is_a_warning(authority: Authority, tmp_path: Path) -> None:
    (tmp_path / "key.pem").chmod(0o666)
    path = tmp_path / "t.yaml"
    path.write_text(MOCK + TLS)
    table = Source(path, {}).load_to_serve()
    assert f"{path}:{KEY}any user of this machine may change the file" in [str(each) for each in table.warnings]
    assert "BEGIN" not in repr(table.loaded)


# As a process --------------------------------------------------------------------------------------------------------


async def test_the_program_tells_its_address_and_a_hangup_takes_new_files(authority: Authority, tmp_path: Path) -> None:
    table = f"{MOCK}{SERVER}  tls: {{cert: cert.pem, key: key.pem}}\n"
    async with running_gateway(table, tmp_path) as gateway, aiohttp.ClientSession() as http:
        url = gateway.url.replace("http://127.0.0.1", "https://localhost")
        async with http.get(f"{url}/v1/models", ssl=trusting(authority)) as answer:
            assert answer.status == 200
        other = Authority()
        write(tmp_path, other.pair(*LOCAL))
        await gateway.reload(table)
        async with http.get(f"{url}/v1/models", ssl=trusting(other)) as answer:
            assert answer.status == 200
        assert f"listening on {gateway.url.replace('http', 'https', 1)}," in gateway.messages()


def resident(process: int) -> int:
    """Return the resident memory of a process in KiB (proc(5))."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_a_connection_takes_far_less_than_asyncio_s_buffer_for_it(authority: Authority, tmp_path: Path) -> None:
    table = f"{MOCK}{SERVER}  tls: {{cert: cert.pem, key: key.pem}}\n"
    async with running_gateway(table, tmp_path) as gateway, AsyncExitStack() as stack:
        context = trusting(authority)

        async def more(count: int) -> None:
            for _ in range(count):
                client = await stack.enter_async_context(connected(port_of(gateway.url), context))
                await client.send(request("GET", "/v1/models"))
                assert (await client.answer()).status == 200

        await more(20)
        before = resident(gateway.process.pid)
        await more(100)
        assert (resident(gateway.process.pid) - before) / 100 < 160  # KiB


async def test_a_body_of_many_records_arrives_whole(authority: Authority, tmp_path: Path) -> None:
    prompt = "".join(f"{number:07d} " for number in range(150_000)).strip()
    async with FakeVendor(json_answer(200, completion(prompt))) as vendor:
        address = f'{{profile: openai_compatible, base_url: "{vendor.base_url}/v1", allow_private: true}}'
        table = f"version: 1\nvendors: {{v: {address}}}\nmodels: {{v/m: {{completions: true}}}}\n"
        async with (
            running_gateway(f"{table}{SERVER}  tls: {{cert: cert.pem, key: key.pem}}\n", tmp_path) as gateway,
            connected(port_of(gateway.url), trusting(authority)) as client,
        ):
            await client.send(request("POST", "/v1/completions", ask("v/m", prompt=prompt)))
            answer = await client.answer()
            assert answer.whole
            assert prompt in answer.body.decode()
            assert prompt in vendor.requests[0].body.decode()
