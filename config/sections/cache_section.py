"""The `cache` section of defaults, vendors, models and routes: which responses are cached for equal requests."""

from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr

from config.sections.section import MaybeEmptySection
from config.sections.value_types import Duration, Referable, Secret, Size, off_as_word, refuse

MOST_BYTES: Final = 1024 * 1024
"""The size in bytes of the largest response that can be cached."""

LEAST_TTL: Final = 1.0
LEAST_SECRET_CHARACTERS: Final = 16
"""The least seconds for which a response is cached, and the least characters of a secret."""


CacheScope = Annotated[Literal["team", "table"], Referable()]
CacheWhere = Annotated[Literal["memory", "redis", "off"], Referable(), BeforeValidator(off_as_word)]


def _check_ttl(ttl: float) -> float:
    if ttl < LEAST_TTL:
        raise refuse("ttl must be 1s or more; where: off switches the cache off")
    return ttl


def _check_size(size: int) -> int:
    if size > MOST_BYTES:
        raise refuse("max_bytes must be 1MiB or less")
    return size


def _check_secret_length(secret: SecretStr | None) -> SecretStr | None:
    if secret is not None and len(secret) < LEAST_SECRET_CHARACTERS:
        raise refuse(f"secret must have {LEAST_SECRET_CHARACTERS} characters or more")
    return secret


class CacheSection(MaybeEmptySection):
    """Responses that are cached for equal requests. The nearest level that has the section decides all of it. For a
    route the levels are the route, then the route or model that is its only target, then `defaults`; for a model they
    are the model, its vendor, and `defaults`. A request uses the cache only if it asks for it: by `temperature: 0`, or
    by the header `x-dragoman-cache: use`."""

    ttl: Annotated[Duration, AfterValidator(_check_ttl)] = Field(
        default=600.0, description="How long a response is reused, from 1s to 24h."
    )
    stale: Duration = Field(
        default=0.0,
        description="How long after that it is still used while no deployment responds, 24h at most. 0: never.",
    )
    scope: CacheScope = Field(
        default="team",
        description="Which clients get a cached response: the team whose request it was, or with table every team "
        "that may use the name. Teams that share responses can notice by the speed that another team sent the same "
        "request.",
    )
    where: CacheWhere = Field(
        default="memory",
        description="Where responses are cached: in each process (memory); also at `server.shared`, as plain text "
        "(redis); or nowhere (off).",
    )
    max_bytes: Annotated[Size, AfterValidator(_check_size)] = Field(
        default=256 * 1024,
        description="A larger response is not cached, 1MiB at most. All responses together take up to 64 MiB of a "
        "process, and each team gets an equal share of it.",
    )
    secret: Annotated[Secret | None, AfterValidator(_check_secret_length)] = Field(
        default=None,
        description="Needed with redis: 16 characters or more, known to the gateways alone. Only the holder of the "
        "secret can write a response there that the gateways accept.",
    )
