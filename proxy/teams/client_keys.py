"""Identifies the team of a request by its key, and checks what the team may pass through to vendors.

Never stores a key in clear: the table has SHA-256 digests, and a request's key is hashed before it is compared.
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

MAX_KEY = 512
"""Characters of a key; longer ones are not hashed."""


class WrongKey(GatewayError):
    """The request has a key of no team, possibly a guess."""


def missing_key() -> GatewayError:
    """Return the error for a request without a key."""
    message = "Missing API key. Send it as 'Authorization: Bearer KEY', 'x-api-key' or 'api-key'."
    return GatewayError(replace(invalid_key().facts, message=message), "missing_api_key")


class ExpiredKey(GatewayError):
    """The request has a team's key, `key`, that has expired; so it is no guess."""

    def __init__(self, key: Key) -> None:
        error = expired_key(key.ends)
        super().__init__(error.facts, error.logged)
        self.key = key


def presented_key(headers: MultiMapping[str], order: Sequence[str]) -> str | None:
    """Return the key in the first header of `order` that has one; `authorization` may hold `Bearer KEY` or the bare
    key.

    Raises GatewayError 400 where that header occurs twice with different keys: a filter in front of the gateway may
    have judged the other one.
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
    """Return the SHA-256 digest of a request's key, in hex: empty for a key that no team can have, None without one.
    Raises GatewayError 400 for two different ones in the same header."""
    key = presented_key(headers, order)
    if key is None:
        return None
    return "" if len(key) > MAX_KEY or not key.isascii() else hashlib.sha256(key.encode("ascii")).hexdigest()


def identify(snapshot: Snapshot, headers: MultiMapping[str], order: Sequence[str], now: float) -> Key:
    """Return the key of a request at the time `now`, in unix seconds.

    Where the table has teams, raises WrongKey for a key of none of them, ExpiredKey for an expired one, and
    GatewayError 401 for a missing key and 400 for two different ones in the same header.
    """
    return key_of(snapshot, key_digest(headers, order), now) if snapshot.keys else NO_KEY


def key_of(snapshot: Snapshot, digest: str | None, now: float) -> Key:
    """Return the key with a digest, in a table with teams. Raises as `identify` does."""
    if digest is None:
        raise missing_key()
    # How long the look-up takes may tell of digests at most, which nobody can choose.
    found = snapshot.keys.get(digest)
    if found is None:
        raise WrongKey(invalid_key().facts)
    if now >= found.ends:
        raise ExpiredKey(found)
    return found


def recognize(snapshot: Snapshot, headers: MultiMapping[str], order: Sequence[str], now: float) -> Key | None:
    """Return the key of a request for the log, where it is refused anyway; None where `identify` would raise."""
    try:
        return identify(snapshot, headers, order, now)
    except GatewayError:
        return None  # the request is refused for another reason


class ClientExtras(Protocol):
    """What a request passes through to the vendor."""

    @property
    def unknown(self) -> Collection[str] | None:
        """The names of fields that are not the gateway's."""

    @property
    def extra_params(self) -> Collection[str] | None:
        """The names in `inference_extra_params`."""

    @property
    def extra_headers(self) -> Collection[str] | None:
        """The names in `inference_extra_headers`."""


def permit_extras(team: Team, request: ClientExtras) -> None:
    """Raise GatewayError (400 or the surface's 422) with every field or header that the team may not pass through.

    Unknown fields count as `inference_extra_params`, since the upstream gets both unchanged. An empty object passes
    nothing.
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
