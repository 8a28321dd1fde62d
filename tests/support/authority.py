"""Certificates for tests, made as they are needed."""

import datetime
import ipaddress
import ssl
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

NOW = datetime.datetime.now(datetime.UTC)
DAY = datetime.timedelta(days=1)

SIGNS = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


@dataclass(frozen=True, slots=True)
class Authority:
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    def signed(
        self, subject: ec.EllipticCurvePrivateKey, *names: x509.GeneralName, until: datetime.datetime = NOW + DAY
    ) -> x509.Certificate:
        """Return a certificate that the authority signed. A certificate without names is the authority's own."""
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
            # Python demands these from 3.13 on, as RFC 5280 does.
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(subject.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
        )
        built = built.add_extension(x509.SubjectAlternativeName(names) if names else SIGNS, critical=not names)
        return built.sign(self.key, hashes.SHA256())

    def pem(self) -> bytes:
        """Return the certificate in PEM, for clients that trust it."""
        return self.signed(self.key).public_bytes(serialization.Encoding.PEM)

    def pair(self, *names: x509.GeneralName, until: datetime.datetime = NOW + DAY) -> tuple[bytes, bytes]:
        """Return a certificate for a server and its key, as PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        return (
            self.signed(key, *names, until=until).public_bytes(serialization.Encoding.PEM),
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            ),
        )

    def server(self, folder: Path, *names: x509.GeneralName, until: datetime.datetime = NOW + DAY) -> ssl.SSLContext:
        """Return the TLS context of a server with such a certificate."""
        chain = folder / "server.pem"
        chain.write_bytes(b"".join(self.pair(*names, until=until)))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain)
        return context


LOCAL = (x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
