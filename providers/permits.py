"""What the operator lets clients send to one deployment beyond the built-in defaults: values only, never a check."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

DEFAULT_SCHEMES: Final = frozenset({"https", "data"})
"""Schemes of media addresses that pass where the table says nothing."""


def _unknown(host: str) -> str:
    return "unknown"


@dataclass(frozen=True, slots=True)
class Media:
    """What addresses of images, sounds, videos and files may look like; None leaves a setting to the next level.

    `schemes` are lower-case URL schemes. `allow_private` says whether an engine may be given addresses inside the
    operator's network.
    """

    schemes: frozenset[str] | None = None
    allow_private: bool | None = None

    def over(self, other: "Media") -> "Media":
        """These settings, with those of `other` where this one has none."""
        return Media(
            other.schemes if self.schemes is None else self.schemes,
            other.allow_private if self.allow_private is None else self.allow_private,
        )


NO_MEDIA: Final = Media()


@dataclass(frozen=True, slots=True)
class Permits:
    """The permissions of one deployment.

    `fields` are names of members that an engine is sent although they name a host, a path, a template or code.
    `headers` are lower-case header names that clients may add; a name that ends in `*` stands for all that begin so.
    `reach` says where a host name or IP literal lies (`loopback`, `private`, `public`, `unknown`, or `forbidden` for
    one that must never be called); it is handed in because the list of address ranges is part of the configuration.
    """

    fields: frozenset[str] = frozenset()
    headers: tuple[str, ...] = ()
    media: Media = NO_MEDIA
    reach: Callable[[str], str] = _unknown


NO_PERMITS: Final = Permits()
