"""The way to a vendor: no certificate that should not be trusted, no old TLS, and nothing in the clear."""

import asyncio
import datetime
import ipaddress
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from config.problems import ConfigError
from providers.failure import FailureKind
from proxy.upstream import tls
from tests.proxy.door import call, failure, tidy_transport
from tests.proxy.tables import snapshot

NOW = datetime.datetime.now(datetime.UTC)
DAY = datetime.timedelta(days=1)
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"


@dataclass(frozen=True, slots=True)
class Authority:
    """Somebody who signs certificates."""

    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    def signed(
        self, subject: ec.EllipticCurvePrivateKey, *names: x509.GeneralName, until: datetime.datetime = NOW + DAY
    ) -> x509.Certificate:
        """A certificate; one without names is the authority's own."""
        issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority")])
        own = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "vendor")]) if names else issuer
        built = (
            x509.CertificateBuilder()
            .subject_name(own)
            .issuer_name(issuer)
            .public_key(subject.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(NOW - 2 * DAY)
            .not_valid_after(until)
            .add_extension(x509.BasicConstraints(ca=not names, path_length=None), critical=True)
        )
        if names:
            built = built.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return built.sign(self.key, hashes.SHA256())

    def server(self, folder: Path, *names: x509.GeneralName, until: datetime.datetime = NOW + DAY) -> ssl.SSLContext:
        """A server's side with such a certificate."""
        key = ec.generate_private_key(ec.SECP256R1())
        chain = folder / "server.pem"
        chain.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            + self.signed(key, *names, until=until).public_bytes(serialization.Encoding.PEM)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain)
        return context


LOCAL = (x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1")))


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Authority]:
    """The authority that SSL_CERT_FILE names."""
    made = Authority()
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(made.signed(made.key).public_bytes(serialization.Encoding.PEM))
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    tls.cache_clear()
    yield made
    tls.cache_clear()


@dataclass(slots=True)
class Vendor:
    """A vendor behind TLS, and what it heard after the handshake."""

    port: int = 0
    heard: bytes = b""


@asynccontextmanager
async def vendor(context: ssl.SSLContext) -> AsyncIterator[Vendor]:
    """A server that answers everything alike."""
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


def test_no_tls_before_1_2_is_spoken() -> None:
    context = tls()
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname


@pytest.mark.parametrize(
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
