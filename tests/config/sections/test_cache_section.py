"""The `cache` section."""

import pytest
from pydantic import ValidationError

from config.sections.cache_section import CacheSection
from tests.support.looped import looped


def test_nothing_written_is_ten_minutes_in_memory_for_each_team() -> None:
    made = CacheSection.model_validate(None)
    assert (made.ttl, made.stale, made.scope, made.where, made.max_bytes) == (600.0, 0.0, "team", "memory", 262_144)


@looped(
    ("text", "says"),
    [
        ({"ttl": "0s"}, "1s or more"),
        ({"ttl": "25h"}, "86400"),
        ({"max_bytes": "2MiB"}, "1MiB or less"),
        ({"where": "redis", "secret": "short"}, "16 characters"),
        ({"scope": "all"}, "table"),
    ],
)
def test_what_cannot_be_is_refused(text: dict[str, object], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        CacheSection.model_validate(text)


def test_off_is_a_word_and_the_secret_is_not_shown() -> None:
    assert CacheSection.model_validate({"where": False}).where == "off"
    made = CacheSection.model_validate({"where": "redis", "secret": "canary-canary-canary"})
    assert "canary" not in repr(made)
