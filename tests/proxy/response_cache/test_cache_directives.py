"""The requests of headers to the response cache."""

import pytest

from proxy.errors import GatewayError
from proxy.response_cache.lookup import CacheDirectives, renews, wish_of
from tests.support.looped import looped


@looped(
    ("headers", "wish"),
    [
        ({}, CacheDirectives.NONE),
        ({"x-dragoman-cache": "use"}, CacheDirectives.USE),
        ({"x-dragoman-cache": " Refresh "}, CacheDirectives.REFRESH),
        ({"x-dragoman-cache": "no-store"}, CacheDirectives.NO_STORE),
        ({"cache-control": "max-age=0, No-Store"}, CacheDirectives.NO_STORE),
        ({"cache-control": "no-store", "x-dragoman-cache": "use"}, CacheDirectives.NO_STORE),
        ({"cache-control": "no-cache"}, CacheDirectives.NONE),
        ({"cache-control": "private, no-storeroom"}, CacheDirectives.NONE),
    ],
)
def test_headers_ask_for_use_renewal_or_nothing(headers: dict[str, str], wish: CacheDirectives) -> None:
    assert wish_of(headers) is wish


def test_a_word_that_means_nothing_is_refused_by_name() -> None:
    with pytest.raises(GatewayError) as refused:
        wish_of({"x-dragoman-cache": "always"})
    assert refused.value.facts.status == 400
    assert "use, refresh, no-store" in refused.value.facts.message


@looped(
    ("control", "renewed"), [(None, False), ("no-cache", True), ("max-age=1, NO-CACHE", True), ("no-caches", False)]
)
def test_no_cache_renews(control: str | None, renewed: bool) -> None:
    assert renews({} if control is None else {"cache-control": control}) is renewed
