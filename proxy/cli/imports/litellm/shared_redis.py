"""LiteLLM's settings of Redis, which stand at its router or its cache, as `server.shared`."""

from config.addresses import redis_fault
from proxy.cli.imports.accounts import Accounts
from proxy.cli.imports.foreign_section import ForeignSection
from proxy.cli.imports.table_draft import Block, Reference, TableDraft


def write_shared(draft: TableDraft, accounts: Accounts, section: ForeignSection, prefix: str) -> None:
    """Write the Redis that a section names by keys with a prefix, unless the table has one."""
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
        section.lose(f"{prefix}host", "is no host to call: not taken")
    elif not isinstance(port, Reference) and not (number.isdecimal() and 0 < int(number) < 65536):
        section.lose(f"{prefix}port", "is no port: not taken")
    else:
        login = f":{password.text}@" if password is not None else ""
        draft.section("server").put("shared", Block({"redis": Reference(f"redis://{login}{place}:{number}")}))


def _write_url(draft: TableDraft, accounts: Accounts, section: ForeignSection, key: str) -> None:
    """Take an address of Redis, which may hold a password, from the environment."""
    url = accounts.secret(section, key, "redis", "URL")
    if url is not None:
        draft.samples[url.text[2:-1]] = "redis://sample:6379"
        draft.section("server").entries.setdefault("shared", Block({"redis": url}))
