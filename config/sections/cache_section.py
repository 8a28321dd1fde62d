"""The `cache` section of defaults, vendors, models and routes: which answers are given again to equal requests."""

from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr

from config.sections.section import MaybeEmptySection
from config.sections.value_types import Duration, Referable, Secret, Size, off_as_word, refuse

MOST_BYTES: Final = 1024 * 1024
"""Bytes of the largest answer that can be kept."""

SHORTEST: Final = 1.0
SECRET: Final = 16
"""Seconds that an answer is given again at least, and characters that a secret has at least."""


CacheScope = Annotated[Literal["team", "table"], Referable()]
CacheWhere = Annotated[Literal["memory", "redis", "off"], Referable(), BeforeValidator(off_as_word)]


def _long_enough(ttl: float) -> float:
    if ttl < SHORTEST:
        raise refuse("ttl must be 1s or more; where: off switches the cache off")
    return ttl


def _small_enough(size: int) -> int:
    if size > MOST_BYTES:
        raise refuse("max_bytes must be 1MiB or less")
    return size


def _secret_enough(secret: SecretStr | None) -> SecretStr | None:
    if secret is not None and len(secret) < SECRET:
        raise refuse(f"secret must have {SECRET} characters or more")
    return secret


class CacheSection(MaybeEmptySection):
    """Answers that are given again to equal requests. The nearest level that has the section says all of it: a route,
    or else the route or model that is its only target, or else `defaults`; a model, or else its vendor, or else
    `defaults`. It is for requests that ask for it: by `temperature: 0`, or by the header `x-dragoman-cache: use`."""

    ttl: Annotated[Duration, AfterValidator(_long_enough)] = Field(
        default=600.0, description="How long an answer is given again, from 1s to 24h."
    )
    stale: Duration = Field(
        default=0.0,
        description="For how long after that it is still given while no deployment answers, 24h at most. 0: never.",
    )
    scope: CacheScope = Field(
        default="team",
        description="Who is given an answer again: the team that asked, or with table every team that may use the "
        "name. Teams that share can tell by its speed that somebody asked the same.",
    )
    where: CacheWhere = Field(
        default="memory",
        description="In each process (memory); also at `server.shared`, where answers stand as plain text (redis); or "
        "nowhere (off).",
    )
    max_bytes: Annotated[Size, AfterValidator(_small_enough)] = Field(
        default=256 * 1024,
        description="A larger answer is not kept, 1MiB at most. All together take up to 64 MiB of a process, and each "
        "team its equal share of them.",
    )
    secret: Annotated[Secret | None, AfterValidator(_secret_enough)] = Field(
        default=None,
        description="Needed with redis: 16 characters or more, known to the gateways alone. Without it nobody can "
        "write an answer there that they would take for their own.",
    )
