"""Who is asking: the key presented, the team it belongs to, and what that team may hand on unseen.

Never holds a key in clear: the table has SHA-256 digests, and the presented key is hashed before it is compared.
"""

import hashlib
import hmac
from collections.abc import Sequence

from multidict import MultiMapping

from providers.unified import UnifiedRequest
from proxy.errors import GatewayError, Problem, conflicting_keys, expired_key, invalid_key, invalid_request
from proxy.snapshot import NO_KEY, Key, Snapshot, Team

MAX_KEY = 512
"""Characters of a key; longer ones are not hashed."""

NO_DIGEST = "0" * 64


class WrongKey(GatewayError):
    """A key was presented and is no team's, which may have been a guess."""


class ExpiredKey(GatewayError):
    """A key was presented that was a team's, `key`: no guess, since it is right in all but the time."""

    def __init__(self, key: Key) -> None:
        error = expired_key(key.ends)
        super().__init__(error.facts, error.logged)
        self.key = key


def presented_key(headers: MultiMapping[str], order: Sequence[str]) -> str | None:
    """The key of the first header in `order` that holds one; `authorization` may carry `Bearer KEY` or the bare key.

    Raises GatewayError 400 where that header comes twice with different keys: a filter in front of the gateway may have
    judged the other one.
    """
    for name in order:
        found = {key for value in headers.getall(name, ()) if (key := _bare(name, value))}
        if len(found) > 1:
            raise conflicting_keys(name)
        if found:
            return found.pop()
    return None


def _bare(name: str, value: str) -> str:
    if name != "authorization":
        return value
    scheme, _, rest = value.strip().partition(" ")
    return rest.strip() if scheme.lower() == "bearer" else value.strip()


def identify(snapshot: Snapshot, headers: MultiMapping[str], order: Sequence[str], now: float) -> Key:
    """The key of a request, at a time in unix seconds. Where the table has teams, raises WrongKey for one that is none
    of theirs, ExpiredKey for one that has ended, and GatewayError 401 for no key and 400 for two in one header's
    name."""
    if not snapshot.keys:
        return NO_KEY
    presented = presented_key(headers, order)
    if presented is None:
        raise invalid_key()
    found = _known(snapshot, presented)
    if found is None:
        raise WrongKey(invalid_key().facts)
    if now >= found.ends:
        raise ExpiredKey(found)
    return found


def recognize(snapshot: Snapshot, headers: MultiMapping[str], order: Sequence[str], now: float) -> Key | None:
    """The key of a request that is refused whoever sent it, for the log; None where `identify` would raise."""
    try:
        return identify(snapshot, headers, order, now)
    except GatewayError:
        return None  # the answer is about something else


def _known(snapshot: Snapshot, key: str) -> Key | None:
    """The key of the table, if it is one, whether it has ended or not."""
    if len(key) > MAX_KEY or not key.isascii():
        return None
    digest = hashlib.sha256(key.encode("ascii")).hexdigest()
    found = snapshot.keys.get(digest)
    # An unknown digest is compared as well, so that both ways take the same path.
    return found if hmac.compare_digest(digest if found is not None else NO_DIGEST, digest) else None


def permit_extras(team: Team, request: UnifiedRequest) -> None:
    """Raises GatewayError (400 or the surface's 422) with each thing the request wants handed on that the team may not.

    Fields outside the unified request go with `inference_extra_params`: an upstream would get them as they are too. An
    empty object asks for nothing.
    """
    problems: list[Problem] = []
    if not team.extra_params:
        if request.extra_params:
            problems.append(_switched_off("inference_extra_params"))
        problems.extend(_switched_off("inference_extra_params", name) for name in request.unknown or ())
    if not team.extra_headers and request.extra_headers:
        problems.append(_switched_off("inference_extra_headers"))
    if problems:
        raise invalid_request(tuple(problems))


def _switched_off(switch: str, field: str | None = None) -> Problem:
    if field is None:
        return Problem((switch,), f"'{switch}' is switched off for this team.", "unsupported_parameter")
    message = f"'{field}' is not a field of the gateway's, and '{switch}' is switched off for this team."
    return Problem((field,), message, "unsupported_parameter")
