"""Convert LiteLLM's response cache to `defaults.cache`, and its Redis settings to `server.shared`. LiteLLM has the
Redis settings at its router or its cache.

Source: LiteLLM's page "Caching" and `caching/caching.py` of litellm 1.108.7, November 2026.
"""

from typing import Final

from config.addresses import redis_fault
from proxy.cli.imports.accounts import Accounts
from proxy.cli.imports.foreign_section import ForeignSection
from proxy.cli.imports.remarks import Reason
from proxy.cli.imports.table_draft import Block, Reference, TableDraft
from proxy.cli.imports.table_values import duration


def write_shared(draft: TableDraft, accounts: Accounts, section: ForeignSection, prefix: str) -> None:
    """Write the Redis of a section to the configuration, unless it already has one. `prefix` is the prefix of the
    section's keys."""
    server = draft.section("server")
    if f"{prefix}url" in section:
        _write_url(draft, accounts, section, f"{prefix}url")
    elif f"{prefix}host" in section and "shared" not in server.entries:
        _write_host(draft, accounts, section, prefix)


def _write_host(draft: TableDraft, accounts: Accounts, section: ForeignSection, prefix: str) -> None:
    host = accounts.url_param(section, f"{prefix}host") or draft.refer("REDIS_HOST", "sample")
    port = accounts.url_param(section, f"{prefix}port", "6379")
    password = accounts.secret(section, f"{prefix}password", "redis", "PASSWORD")
    place, number = (each.text if isinstance(each, Reference) else each for each in (host, port or "6379"))
    if redis_fault(f"redis://{'sample' if isinstance(host, Reference) else place}:6379") is not None:
        section.report_key(f"{prefix}host", "is not a host to call: not taken")
    elif not isinstance(port, Reference) and not (number.isdecimal() and 0 < int(number) < 65536):
        section.report_key(f"{prefix}port", "is not a port: not taken")
    else:
        login = f":{password.text}@" if password is not None else ""
        draft.section("server").put("shared", Block({"redis": Reference(f"redis://{login}{place}:{number}")}))


def _write_url(draft: TableDraft, accounts: Accounts, section: ForeignSection, key: str) -> None:
    """Write a Redis URL as a reference to an environment variable, because the URL may contain a password."""
    url = accounts.secret(section, key, "redis", "URL")
    if url is not None:
        draft.samples[url.text[2:-1]] = "redis://sample:6379"
        draft.section("server").entries.setdefault("shared", Block({"redis": url}))


_ASKED: Final = (
    "here a response is cached if the request asks for it (temperature 0, or the header x-dragoman-cache: use), for "
    "its team alone (scope)"
)
_PLACES: Final = "the places of cached responses are memory and Redis: written as memory"
_UNUSED: Final = Reason("has no counterpart: cached responses stand in memory or at server.shared")


def write_cache(draft: TableDraft, accounts: Accounts, settings: ForeignSection) -> None:
    """Write the cache that litellm_settings enable."""
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
        params.report_key("ttl", "is less than 1s: not taken")
        ttl = None
    block.put("ttl", ttl)
    if kind == "redis" and "shared" in draft.section("server").entries:
        block.put("where", "redis")
        block.put("secret", draft.refer("CACHE_SECRET", "sample-CACHE_SECRET"))
    elif kind not in ("redis", "local"):
        params.report_key("type", _PLACES)
    if params.text("mode") == "default_off":
        params.note("mode", _ASKED)
    params.explain_rest(lambda key: _UNUSED)
