"""Credentials of a target and the headers made from them. This is the only module that reveals a secret.

For a credential that expires, this module only describes the source. This module reads no environment, file or clock.
"""

import base64
import binascii
import hmac
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import ClassVar, Literal, TypeAlias

from pydantic import SecretStr

from providers.redaction import LEAST_PART_CHARACTERS, MASK, holds_part, redact

_SECRET_NAME = re.compile(r"(?i)auth|key|token|secret|pass|cred|session|sign|cookie")
"""Words in the name of a header whose value is secret, even if it is short."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9-]{1,30}) +(\S+)")
"""A header's value that begins with an authentication scheme, such as `Bearer`."""


@dataclass(frozen=True, slots=True)
class Authorities:
    """Certificate authorities to trust for a peer instead of the system's, as PEM. They are compared by their digest,
    so that connections with different authorities are not shared."""

    digest: str
    pem: str = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class AwsSource:
    """AWS's default credential chain, for requests signed for a service in a region. A profile of AWS's own files, and
    a role to assume, are optional."""

    service: str
    region: str
    profile: str | None = None
    role_arn: str | None = None

    kind: ClassVar[str] = "aws"
    shown: ClassVar[Mapping[str, str]] = {"X-Amz-Date": MASK, "Authorization": f"AWS4-HMAC-SHA256 {MASK}"}


@dataclass(frozen=True, slots=True)
class GoogleSource:
    """Google's Application Default Credentials, or the credentials in a JSON file, given by its path."""

    scope: str
    file: str | None = None

    kind: ClassVar[str] = "google"
    shown: ClassVar[Mapping[str, str]] = {"Authorization": f"Bearer {MASK}"}


@dataclass(frozen=True, slots=True)
class EntraSource:
    """Microsoft Entra ID by Azure's default credential chain. `client_id` selects one of several identities of a
    machine or pod."""

    scope: str
    client_id: str | None = None

    kind: ClassVar[str] = "entra"
    shown: ClassVar[Mapping[str, str]] = GoogleSource.shown


@dataclass(frozen=True, slots=True)
class OidcSource:
    """OAuth 2.0 client credentials (RFC 6749, 4.4).

    `client_auth` is the place of the secret: in a header (`basic`) or in the body (`post`). `allow_private` is whether
    the endpoint may be in a private network. `authorities` are trusted for its certificate (`None`: the system's).
    """

    token_url: str
    client_id: str
    client_secret: SecretStr
    scope: str | None = None
    audience: str | None = None
    client_auth: Literal["basic", "post"] = "basic"
    allow_private: bool = False
    authorities: Authorities | None = None

    kind: ClassVar[str] = "oidc"
    shown: ClassVar[Mapping[str, str]] = GoogleSource.shown


@dataclass(frozen=True, slots=True)
class ExchangeSource:
    """An API key that a token endpoint exchanges for access tokens, by IBM Cloud's grant. The vendor never gets the
    key. `allow_private` is as in `OidcSource`."""

    token_url: str
    api_key: SecretStr
    allow_private: bool = False

    kind: ClassVar[str] = "exchange"
    shown: ClassVar[Mapping[str, str]] = GoogleSource.shown


Source: TypeAlias = AwsSource | GoogleSource | EntraSource | OidcSource | ExchangeSource
"""The source of a credential that expires. Equal sources return the same credential."""


def reveal(secret: SecretStr) -> str:
    """Return the text of a secret. The text may only be used for a socket or a signature."""
    return secret.get_secret_value()


def _password(scheme: str, value: str) -> Iterator[str]:
    """Yield the user and password of RFC 7617's `Basic`, and the password alone, if the value holds them."""
    if scheme.lower() == "basic":
        try:
            pair = base64.b64decode(value, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            return
        yield from (part for part in (pair, pair.partition(":")[2]) if part)


@dataclass(frozen=True, slots=True)
class Credential:
    """How a target authenticates: a key, static headers whose values may be secret, or a source of credentials.

    `style` is `bearer` (`Authorization: Bearer KEY`), `header` (`NAME: KEY`) or `none`. Without a key nothing is sent,
    which vLLM and llama.cpp accept if they were started without a key. With a `source` there is no key: each call gets
    a credential made from the fetched one.
    """

    style: Literal["bearer", "header", "none"] = "none"
    header: str = "Authorization"
    key: SecretStr | None = None
    static: Mapping[str, SecretStr] = field(default_factory=dict)
    source: Source | None = None

    def headers(self) -> dict[str, str]:
        """Return the headers in clear text, which may only be used for the socket."""
        revealed = {name: reveal(value) for name, value in self._secrets().items()}
        if self.style == "bearer" and self.key is not None:
            revealed[self.header] = f"Bearer {revealed[self.header]}"
        return revealed

    def masked(self) -> dict[str, str]:
        """Return the headers for people, with every value masked. For fetched credentials the scheme is shown."""
        return {**dict.fromkeys(self._secrets(), MASK), **(self.source.shown if self.source else {})}

    def seal(self, *words: str) -> str:
        """Return a digest of the words and the credential or its source. Different credentials give different digests,
        and a digest reveals nothing of the credential."""
        parts = [f"{name.lower()}: {value}" for name, value in sorted(self.headers().items())]
        if self.source is not None:
            values = ((each.name, getattr(self.source, each.name)) for each in fields(self.source))
            named = ((name, reveal(value) if isinstance(value, SecretStr) else value) for name, value in values)
            parts += [self.source.kind, *(f"{name}: {value}" for name, value in named)]
        return hmac.digest(repr(parts).encode(), repr(words).encode(), "sha256").hex()[:32]

    def conceal(self, text: str, fetched: Iterable[SecretStr] = ()) -> str:
        """Return a vendor's text with the credential's secrets masked in any form (see `providers.redaction`).
        `fetched` are the secrets that its source has returned recently."""
        return redact(text, dict.fromkeys([*self._known_secrets(), *map(reveal, fetched)]))

    def is_echoed_in(self, text: str, fetched: Iterable[SecretStr] = ()) -> bool:
        """Return whether a text of at most a few hundred characters holds a part of a secret unchanged, in any letter
        case. This takes a hundredth of the time of `conceal`. It is for texts that can be left out."""
        plain = text.lower()
        return any(holds_part(plain, secret) for secret in (*self._known_secrets(), *map(reveal, fetched)))

    def _known_secrets(self) -> Iterator[str]:
        """Yield the secrets: the key, the secrets of the source, and static headers, with and without an authentication
        scheme. A short word counts as a secret only if the header's name indicates it."""
        if self.key is not None:
            yield reveal(self.key)
        if self.source is not None:
            values = (getattr(self.source, each.name) for each in fields(self.source))
            yield from (reveal(value) for value in values if isinstance(value, SecretStr))
        for name, secret in self.static.items():
            value = reveal(secret)
            if len(value) >= LEAST_PART_CHARACTERS or not value.isalpha() or _SECRET_NAME.search(name):
                yield value
            if scheme := _SCHEME.fullmatch(value):
                yield scheme[2]
                yield from _password(scheme[1], scheme[2])

    def _secrets(self) -> dict[str, SecretStr]:
        secrets = dict(self.static)
        if self.style != "none" and self.key is not None:
            secrets[self.header] = self.key
        return secrets
