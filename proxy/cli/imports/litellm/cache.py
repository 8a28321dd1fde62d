"""LiteLLM's cache of responses, as `defaults.cache`.

Source: LiteLLM's page "Caching" and `caching/caching.py` of litellm 1.108.7, November 2026.
"""

from typing import Final

from proxy.cli.imports.accounts import Accounts
from proxy.cli.imports.foreign_section import ForeignSection
from proxy.cli.imports.litellm.shared_redis import write_shared
from proxy.cli.imports.remarks import Reason
from proxy.cli.imports.table_draft import TableDraft
from proxy.cli.imports.table_values import duration

_ASKED: Final = (
    "here a response is cached if the request asks for it (temperature 0, or the header x-dragoman-cache: use), for "
    "its team alone (scope)"
)
_PLACES: Final = "the places of cached responses are memory and Redis: written as memory"
_UNUSED: Final = Reason("has no counterpart: cached responses stand in memory or at server.shared")


def write_cache(draft: TableDraft, accounts: Accounts, settings: ForeignSection) -> None:
    """Write the cache that litellm_settings switch on."""
    params = settings.section("cache_params").apart(settings.comments)
    if not settings.flag("cache"):
        params.explain_rest(lambda key: Reason("the cache is switched off (litellm_settings.cache)", "note"))
        return
    settings.note("cache", _ASKED)
    block = draft.section("defaults").block("cache")
    kind = params.text("type") or "redis"
    if kind == "redis":
        write_shared(draft, accounts, params, "")
    ttl = duration(params, "ttl") if "ttl" in params else None
    if ttl is not None and ttl.endswith("ms"):
        params.lose("ttl", "is less than 1s: not taken")
        ttl = None
    block.put("ttl", ttl)
    if kind == "redis" and "shared" in draft.section("server").entries:
        block.put("where", "redis")
        block.put("secret", draft.refer("CACHE_SECRET", "sample-CACHE_SECRET"))
    elif kind not in ("redis", "local"):
        params.lose("type", _PLACES)
    if params.text("mode") == "default_off":
        params.note("mode", _ASKED)
    params.explain_rest(lambda key: _UNUSED)
