"""The connection to a vendor: no untrusted certificate, no old TLS, and nothing unencrypted."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography import x509

from config.load_config import load_file
from config.problem import ConfigError
from providers.failure import FailureKind
from providers.target import Target
from providers.vendor_credential import Authorities, OidcSource
from proxy.http_client.dialer import tls
from proxy.routing.snapshot import build_snapshot
from proxy.vendor_credentials.oidc import OidcFetch
from proxy.vendor_credentials.token_cache import Unobtainable
from tests.proxy.kit.tables import snapshot
from tests.proxy.kit.transport_calls import call, failure, tidy_transport
from tests.support.authority import DAY, LOCAL, NOW, Authority
from tests.support.looped import looped

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Authority]:
    """The authority that SSL_CERT_FILE names."""
    made = Authority()
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(made.pem())
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    tls.cache_clear()
    yield made
    tls.cache_clear()


@dataclass(slots=True)
class Vendor:
    """A vendor behind TLS, and the bytes that it received after the handshake."""

    port: int = 0
    heard: bytes = b""


@asynccontextmanager
async def vendor(context: ssl.SSLContext) -> AsyncIterator[Vendor]:
    """Run a server that responds to everything alike."""
    made = Vendor()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        made.heard += await reader.readuntil(b"\r\n\r\n")
        writer.write(ANSWER)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    async with server:
        made.port = server.sockets[0].getsockname()[1]
        yield made


async def test_an_authority_of_the_operator_s_own_is_trusted(authority: Authority, tmp_path: Path) -> None:
    async with vendor(authority.server(tmp_path, *LOCAL)) as made, tidy_transport() as transport:
        for host in ("localhost", "127.0.0.1"):
            response = await transport.open(call(f"https://{host}:{made.port}/"), "req-1")
            assert response.status == 200
        assert b"sk-operator" in made.heard


STRANGERS: dict[str, Callable[[Authority, Path], ssl.SSLContext]] = {
    "an authority nobody knows": lambda authority, folder: Authority().server(folder, *LOCAL),
    "another host": lambda authority, folder: authority.server(folder, x509.DNSName("other.example")),
    "a certificate of yesterday": lambda authority, folder: authority.server(folder, *LOCAL, until=NOW - DAY),
}


@pytest.mark.parametrize("stranger", STRANGERS)
async def test_a_vendor_that_cannot_prove_its_name_hears_nothing(
    authority: Authority, tmp_path: Path, stranger: str
) -> None:
    async with vendor(STRANGERS[stranger](authority, tmp_path)) as made, tidy_transport() as transport:
        assert await failure(transport, f"https://localhost:{made.port}/") is FailureKind.TLS
        assert made.heard == b""


OWN = """\
version: 1
vendors: {v: {profile: openai_compatible, base_url: "https://localhost:1", allow_private: true, api_key: sk-operator}}
models: {v/m: {deployments: {own: {ca_file: own.pem}, same: {ca_file: same.pem}, system: {}}}}
"""


def targets(folder: Path, own: bytes) -> dict[str, Target]:
    for name in ("own.pem", "same.pem"):
        (folder / name).write_bytes(own)
    path = folder / "t.yaml"
    path.write_text(OWN)
    return {target.deployment: target for target in build_snapshot(load_file(path, {})).models["v/m"].targets}


async def test_a_deployment_s_own_authority_counts_for_it_alone_and_instead_of_the_system_s(
    authority: Authority, tmp_path: Path
) -> None:
    company = Authority()
    found = targets(tmp_path, company.pem())
    inner, public = company.server(tmp_path, *LOCAL), authority.server(tmp_path, *LOCAL)
    async with vendor(inner) as made, tidy_transport() as transport:
        url = f"https://localhost:{made.port}/"
        assert (await transport.open(call(url, found["own"]), "req-1")).status == 200
        made.heard = b""
        assert await failure(transport, url, found["system"]) is FailureKind.TLS
        assert made.heard == b""
    async with vendor(public) as made, tidy_transport() as transport:
        url = f"https://localhost:{made.port}/"
        assert await failure(transport, url, found["own"]) is FailureKind.TLS
        assert made.heard == b""
        assert (await transport.open(call(url, found["system"]), "req-1")).status == 200


@pytest.mark.parametrize("stranger", STRANGERS)
async def test_an_authority_of_its_own_lets_no_stranger_in(authority: Authority, tmp_path: Path, stranger: str) -> None:
    company = Authority()
    target = targets(tmp_path, company.pem())["own"]
    async with vendor(STRANGERS[stranger](company, tmp_path)) as made, tidy_transport() as transport:
        assert await failure(transport, f"https://localhost:{made.port}/", target) is FailureKind.TLS
        assert made.heard == b""


async def test_a_file_that_changed_counts_from_the_next_table_on(authority: Authority, tmp_path: Path) -> None:
    old, new = Authority(), Authority()
    before, after = (targets(tmp_path, each.pem())["own"] for each in (old, new))
    async with vendor(new.server(tmp_path, *LOCAL)) as made, tidy_transport() as transport:
        url = f"https://localhost:{made.port}/"
        assert await failure(transport, url, before) is FailureKind.TLS
        assert (await transport.open(call(url, after), "req-1")).status == 200


def test_equal_files_are_one_context_and_share_connections(tmp_path: Path) -> None:
    found = targets(tmp_path, Authority().pem())
    own, same = found["own"].authorities, found["same"].authorities
    assert own is not None
    assert tls(own) is tls(same)
    assert tls(own) is not tls()
    assert "BEGIN" not in repr(found["own"])


@pytest.mark.parametrize(
    ("ca_file", "reason"),
    [
        ("", "the token endpoint: The upstream's certificate is from an unknown authority (localhost:{port})."),
        (", ca_file: id.pem", "the token endpoint returned 200 without an access token"),
    ],
)
async def test_a_token_endpoint_has_an_authority_of_its_own(
    authority: Authority, tmp_path: Path, ca_file: str, reason: str
) -> None:
    company = Authority()
    (tmp_path / "id.pem").write_bytes(company.pem())
    async with vendor(company.server(tmp_path, *LOCAL)) as identity, tidy_transport() as transport:
        oidc = f'token_url: "https://localhost:{identity.port}/", client_id: c, client_secret: s{ca_file}'
        (tmp_path / "t.yaml").write_text(
            "version: 1\nmodels: {v/m: {}}\ndefaults: {allow_private: true}\n"
            f"vendors: {{v: {{profile: vllm, base_url: 'https://localhost:1', credentials: {{oidc: {{{oidc}}}}}}}}}\n"
        )
        target = build_snapshot(load_file(tmp_path / "t.yaml", {})).models["v/m"].targets[0]
        source = target.credential.source
        assert isinstance(source, OidcSource)
        with pytest.raises(Unobtainable) as caught:
            await OidcFetch(source, target, transport)()
        assert caught.value.reason == reason.format(port=identity.port)


@pytest.mark.parametrize("authorities", [None, Authorities("x", Authority().pem().decode())])
def test_no_tls_before_1_2_is_spoken(authorities: Authorities | None) -> None:
    context = tls(authorities)
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname


@looped(
    ("settings", "fault"),
    [
        ('base_url: "http://llm.example.com/v1"', "https required"),
        ('base_url: "http://8.8.8.8/v1", allow_private: true', "https required"),
        ('base_url: "https://llm.example.com/v1", insecure_skip_verify: true', "insecure_skip_verify"),
        ('base_url: "https://llm.example.com/v1", verify: false', "verify"),
    ],
)
def test_no_table_sends_keys_in_the_clear_or_to_somebody_unproven(settings: str, fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        snapshot(f"vendors: {{v: {{profile: openai, api_key: k, {settings}}}}}\nmodels: {{v/m: {{}}}}")
