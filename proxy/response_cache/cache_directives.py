"""What a client's headers ask of the answer cache. Pure.

`cache-control` is RFC 9111, 5.2.1: `no-store` keeps an answer from being kept, `no-cache` from being given without
asking again. Its other directives are for caches between client and gateway.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final

from proxy.errors import FieldProblem, invalid_request

HEADER: Final = "x-dragoman-cache"


class CacheDirectives(Enum):
    """What a client asks for: nothing; an answer out of the cache; a new answer, to be kept; or neither."""

    NONE = ""
    USE = "use"
    REFRESH = "refresh"
    NO_STORE = "no-store"


_WISHES: Final = {wish.value: wish for wish in CacheDirectives if wish is not CacheDirectives.NONE}


def wish_of(headers: Mapping[str, str]) -> CacheDirectives:
    """Return what a client's headers ask for. Raises GatewayError for a word that means nothing here.

    A plain `no-cache` asks for no cache by itself: it renews the answer of a request that is for the cache anyhow.
    """
    control = headers.get("cache-control")
    told = () if control is None else tuple(each.strip().lower() for each in control[:256].split(","))
    own = headers.get(HEADER)
    wish = CacheDirectives.NONE if own is None else _WISHES.get(own.strip().lower())
    if wish is None:
        message = f"'{HEADER}' must be one of {', '.join(_WISHES)}."
        raise invalid_request((FieldProblem((HEADER,), message),))
    return CacheDirectives.NO_STORE if "no-store" in told else wish


def renews(headers: Mapping[str, str]) -> bool:
    """Return whether a request that is for the cache wants a new answer all the same."""
    control = headers.get("cache-control")
    return control is not None and any(each.strip().lower() == "no-cache" for each in control[:256].split(","))
