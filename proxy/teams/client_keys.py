"""Identifies the team of a request by its key, and checks which fields the team may pass through to vendors.

Keys are never stored in clear text: the configuration has SHA-256 digests, and the key of a request is hashed before it
is compared.
"""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Protocol

from multidict import MultiMapping

from proxy.errors import (
    FieldProblem,
    GatewayError,
    conflicting_keys,
    expired_key,
    invalid_key,
    invalid_request,
)
from proxy.routing.snapshot import NO_KEY, Key, Snapshot, Team

MAX_KEY_LENGTH = 512
"""The most characters of a key. Longer ones are not hashed."""


class WrongKey(GatewayError):
    """The error for a request whose key belongs to no team. The key may be a guess."""


def missing_key() -> GatewayError:
    """Return the error for a request without a key."""
    message = "Missing API key. Send it as 'Authorization: Bearer KEY', 'x-api-key' or 'api-key'."
    return GatewayError(replace(invalid_key().facts, message=message), "missing_api_key")


class ExpiredKey(GatewayError):
    """The error for a request with a team's expired key, `key`. The key is therefore no guess."""

    def __init__(self, key: Key) -> None:
        error = expired_key(key.ends)
        super().__init__(error.facts, error.logged)
        self.key = key


def presented_key(headers: MultiMapping[str], order: Sequence[str]) -> str | None:
    """Return the key in the first header of `order` that has one. `authorization` may contain `Bearer KEY` or the bare
    key.

    Raises GatewayError 400 if that header occurs twice with different keys, because a filter in front of the gateway
    may have checked the key that the gateway would not use.
    """
    for name in order:
        values = headers.getall(name, None)
        if values is None:
            continue
        if len(values) == 1:
            if key := _bare(name, values[0]):
                return key
            continue
        found = [key for value in values if (key := _bare(name, value))]
        if len(found) > 1 and len(set(found)) > 1:
            raise conflicting_keys(name)
        if found:
            return found[0]
    return None


def _bare(name: str, value: str) -> str:
    if name != "authorization":
        return value
    if value.startswith("Bearer "):
        return value[7:].strip()
    scheme, _, rest = value.strip().partition(" ")
    return rest.strip() if scheme.lower() == "bearer" else value.strip()


def key_digest(headers: MultiMapping[str], order: Sequence[str]) -> str | None:
    """Return the SHA-256 digest of a request's key in hex. It is empty for a key that no team can have, and `None` if
    the request has no key. Raises GatewayError 400 for two different keys in the same header."""
    key = presented_key(headers, order)
    if key is None:
        return None
    return "" if len(key) > MAX_KEY_LENGTH or not key.isascii() else hashlib.sha256(key.encode("ascii")).hexdigest()


def identify(snapshot: Snapshot, headers: MultiMapping[str], order: Sequence[str], now: float) -> Key:
    """Return the key of a request at the time `now`, in unix seconds.

    If there are teams, raises WrongKey for a key of no team, ExpiredKey for an expired one, and GatewayError 401 for a
    missing key or 400 for two different ones in the same header.
    """
    return key_of(snapshot, key_digest(headers, order), now) if snapshot.keys else NO_KEY


def key_of(snapshot: Snapshot, digest: str | None, now: float) -> Key:
    """Return the key with a digest, in a configuration with teams. Raises the errors of `identify`."""
    if digest is None:
        raise missing_key()
    # The time of this lookup can only reveal digests, which no client can choose.
    found = snapshot.keys.get(digest)
    if found is None:
        raise WrongKey(invalid_key().facts)
    if now >= found.ends:
        raise ExpiredKey(found)
    return found


def recognize(snapshot: Snapshot, headers: MultiMapping[str], order: Sequence[str], now: float) -> Key | None:
    """Return the key of a request that is refused anyway, for the log. Return `None` if `identify` would raise."""
    try:
        return identify(snapshot, headers, order, now)
    except GatewayError:
        return None  # The request is refused for another reason.


class ClientExtras(Protocol):
    """The fields of a request that are passed through to the vendor."""

    @property
    def unknown(self) -> Collection[str] | None:
        """The names of fields that the gateway does not define."""

    @property
    def extra_params(self) -> Collection[str] | None:
        """The names in `inference_extra_params`."""

    @property
    def extra_headers(self) -> Collection[str] | None:
        """The names in `inference_extra_headers`."""


def permit_extras(team: Team, request: ClientExtras) -> None:
    """Raise GatewayError (400, or 422 by the surface) with every field or header that the team may not pass through.

    Unknown fields count as `inference_extra_params`, because the vendor receives both unchanged. An empty object passes
    nothing through.
    """
    if team.extra_params and team.extra_headers:
        return
    problems: list[FieldProblem] = []
    if not team.extra_params:
        if request.extra_params:
            problems.append(_disabled("inference_extra_params"))
        problems.extend(_disabled("inference_extra_params", name) for name in request.unknown or ())
    if not team.extra_headers and request.extra_headers:
        problems.append(_disabled("inference_extra_headers"))
    if problems:
        raise invalid_request(tuple(problems))


def _disabled(setting: str, field: str | None = None) -> FieldProblem:
    if field is None:
        return FieldProblem((setting,), f"'{setting}' is switched off for this team.", "unsupported_parameter")
    message = f"'{field}' is not a field of the gateway's, and '{setting}' is switched off for this team."
    return FieldProblem((field,), message, "unsupported_parameter")
