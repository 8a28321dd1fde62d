"""Credentials of a target and the headers they become; the one place that reveals a secret.

Never reads the environment, a file or a clock, and never fetches: where a credential that expires comes from is only
said here.
"""

import base64
import binascii
import hmac
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import ClassVar, Literal, TypeAlias

from pydantic import SecretStr

from providers.redaction import MASK, RECOGNISABLE, redact

_CREDENTIAL = re.compile(r"(?i)auth|key|token|secret|pass|cred|session|sign|cookie")
"""What the name of a header holds whose value is secret, however much it looks like a word."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9-]{1,30}) +(\S+)")
"""A header's value that begins with the name of a scheme, as `Bearer` is."""


@dataclass(frozen=True, slots=True)
class Authorities:
    """Who may vouch for the certificate of whom we call, in place of the system's: certificates as PEM. Told apart by
    their digest, which is what makes connections with other authorities other connections."""

    digest: str
    pem: str = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class AwsSource:
    """AWS's own chain, for requests signed for a service in a region; with a profile of AWS's own files instead of the
    environment, and a role to take on with what was found."""

    service: str
    region: str
    profile: str | None = None
    role_arn: str | None = None

    kind: ClassVar[str] = "aws"
    shown: ClassVar[Mapping[str, str]] = {"X-Amz-Date": MASK, "Authorization": f"AWS4-HMAC-SHA256 {MASK}"}


@dataclass(frozen=True, slots=True)
class GoogleSource:
    """Google's Application Default Credentials, or those in a JSON file (its path)."""

    scope: str
    file: str | None = None

    kind: ClassVar[str] = "google"
    shown: ClassVar[Mapping[str, str]] = {"Authorization": f"Bearer {MASK}"}


@dataclass(frozen=True, slots=True)
class EntraSource:
    """Microsoft Entra ID by Azure's own chain; `client_id` chooses among several identities of a machine or pod."""

    scope: str
    client_id: str | None = None

    kind: ClassVar[str] = "entra"
    shown: ClassVar[Mapping[str, str]] = GoogleSource.shown


@dataclass(frozen=True, slots=True)
class OidcSource:
    """OAuth 2.0 client credentials (RFC 6749, 4.4). `client_auth` says where the secret goes: `basic` in a header,
    `post` in the body; `allow_private` whether the endpoint may lie in the own network; `authorities` who may vouch for
    it (None = the system's)."""

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
    """An API key that a token endpoint exchanges for access tokens, by IBM Cloud's grant; the vendor never sees the
    key. `allow_private` as of `OidcSource`."""

    token_url: str
    api_key: SecretStr
    allow_private: bool = False

    kind: ClassVar[str] = "exchange"
    shown: ClassVar[Mapping[str, str]] = GoogleSource.shown


Source: TypeAlias = AwsSource | GoogleSource | EntraSource | OidcSource | ExchangeSource
"""Where a credential that expires comes from; equal ones are the same credential."""


def reveal(secret: SecretStr) -> str:
    """The text of a secret, for a socket or a signature only."""
    return secret.get_secret_value()


def _password(scheme: str, value: str) -> Iterator[str]:
    """The password of RFC 7617's `Basic`, where the value holds one."""
    if scheme.lower() == "basic":
        try:
            pair = base64.b64decode(value, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            return
        yield from (part for part in (pair, pair.partition(":")[2]) if part)


@dataclass(frozen=True, slots=True)
class Credential:
    """How a target authenticates: a key with its header style, and static headers whose values may be secret.

    `style` is `bearer` (`Authorization: Bearer KEY`), `header` (`NAME: KEY`) or `none`. Without a key nothing is sent,
    which vLLM and llama.cpp accept when they were started without one. With a `source` there is no key: each call gets
    a credential of its own, made of what was fetched from there.
    """

    style: Literal["bearer", "header", "none"] = "none"
    header: str = "Authorization"
    key: SecretStr | None = None
    static: Mapping[str, SecretStr] = field(default_factory=dict)
    source: Source | None = None

    def headers(self) -> dict[str, str]:
        """The headers in clear, for the socket only."""
        revealed = {name: reveal(value) for name, value in self._secrets().items()}
        if self.style == "bearer" and self.key is not None:
            revealed[self.header] = f"Bearer {revealed[self.header]}"
        return revealed

    def masked(self) -> dict[str, str]:
        """The same headers with every value hidden, for people; of what would be fetched, the scheme is shown."""
        return {**dict.fromkeys(self._secrets(), MASK), **(self.source.shown if self.source else {})}

    def seal(self, *words: str) -> str:
        """A digest of the words that only comes out the same with the same credential, of which it shows nothing; of
        one that is fetched, the same source counts as the same."""
        parts = [f"{name.lower()}: {value}" for name, value in sorted(self.headers().items())]
        if self.source is not None:
            values = ((each.name, getattr(self.source, each.name)) for each in fields(self.source))
            named = ((name, reveal(value) if isinstance(value, SecretStr) else value) for name, value in values)
            parts += [self.source.kind, *(f"{name}: {value}" for name, value in named)]
        return hmac.digest(repr(parts).encode(), repr(words).encode(), "sha256").hex()[:32]

    def conceal(self, text: str, fetched: Iterable[SecretStr] = ()) -> str:
        """A vendor's words without the secrets that it was sent, in whatever form; see `providers.redaction`. `fetched`
        are those that its source has given lately."""
        return redact(text, dict.fromkeys([*self._told(), *map(reveal, fetched)]))

    def _told(self) -> Iterator[str]:
        """What is secret of the credential: the key, what fetches another one, and static headers, also without the
        name of a scheme before them, unless they are short words under a name that speaks of no credential."""
        if self.key is not None:
            yield reveal(self.key)
        if self.source is not None:
            values = (getattr(self.source, each.name) for each in fields(self.source))
            yield from (reveal(value) for value in values if isinstance(value, SecretStr))
        for name, secret in self.static.items():
            value = reveal(secret)
            if len(value) >= RECOGNISABLE or not value.isalpha() or _CREDENTIAL.search(name):
                yield value
            if scheme := _SCHEME.fullmatch(value):
                yield scheme[2]
                yield from _password(scheme[1], scheme[2])

    def _secrets(self) -> dict[str, SecretStr]:
        secrets = dict(self.static)
        if self.style != "none" and self.key is not None:
            secrets[self.header] = self.key
        return secrets
