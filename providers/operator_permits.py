"""What the operator lets clients send to one deployment beyond the built-in defaults."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

DEFAULT_SCHEMES: Final = frozenset({"https", "data"})
"""Schemes of media addresses that are allowed where the routing table has no setting."""


def _unknown(host: str) -> str:
    return "unknown"


@dataclass(frozen=True, slots=True)
class Media:
    """Which addresses of images, sounds, videos and files are allowed; None leaves a setting to the next level.

    `schemes` are lower-case URL schemes. `allow_private` says whether an engine may be given addresses inside the
    operator's network.
    """

    schemes: frozenset[str] | None = None
    allow_private: bool | None = None

    def over(self, other: "Media") -> "Media":
        """Return these settings, with those of `other` where this one has none."""
        return Media(
            other.schemes if self.schemes is None else self.schemes,
            other.allow_private if self.allow_private is None else self.allow_private,
        )


NO_MEDIA: Final = Media()


@dataclass(frozen=True, slots=True)
class Permits:
    """The permissions of one deployment.

    `fields` are names of members that an engine is sent although they name a host, a path, a template or code.
    `headers` are lower-case header names that clients may add; a name that ends in `*` matches all with that prefix.
    `reach` returns where a host name or IP literal is (`loopback`, `private`, `public`, `unknown`, or `forbidden` for
    one that must never be called); it is passed in because the list of address ranges is part of the configuration.
    """

    fields: frozenset[str] = frozenset()
    headers: tuple[str, ...] = ()
    media: Media = NO_MEDIA
    reach: Callable[[str], str] = _unknown


NO_PERMITS: Final = Permits()
