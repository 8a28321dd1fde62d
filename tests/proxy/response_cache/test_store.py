"""The key that seals responses, and the store that holds them."""

import secrets
from typing import cast

from proxy.off_loop.request_threads import RequestThreads
from proxy.response_cache.store import ResponseStore
from proxy.routing.route_settings import CacheRules
from proxy.telemetry.metrics import Metrics

OWN = CacheRules(60.0, 0.0, "team", shared=False, max_bytes=1024)
SHARED = CacheRules(60.0, 0.0, "team", shared=True, max_bytes=1024, seal=secrets.token_hex(16))


def made() -> ResponseStore:
    return ResponseStore(lambda: 0.0, Metrics(), cast(RequestThreads, None))


def test_answers_that_others_see_are_sealed_with_the_table_s_secret_and_others_kept_here() -> None:
    one, other = made(), made()
    assert one.secret(SHARED) == other.secret(SHARED) == SHARED.seal.encode()
    assert one.secret(OWN) != other.secret(OWN)
    assert len(one.secret(OWN)) >= 32
    answers = made()
    assert answers.memory(OWN) is answers.here
    assert answers.memory(SHARED) is answers.there
    assert answers.here.kept is answers.there.kept
