"""No client chooses the address or the credential of a call: 50,000 requests try, against every vendor of the
catalogue.

The requests are planned and encoded in this process, without sockets, for every target that they may reach, as the
gateway does.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from urllib.parse import unquote, urlsplit

import orjson
import pytest
import yaml

from config.load_config import load_text
from providers.dialect import UpstreamRequest
from providers.emulation.plan_calls import CallPlan
from providers.json_types import JsonObject, JsonValue
from providers.profile import Profile
from providers.profiles.load_profiles import load_profiles
from providers.target import Target
from proxy.gateway.dry_run import explained
from proxy.routing.snapshot import ANYONE, Snapshot, build_snapshot
from proxy.upstream.request_headers import call_headers
from tests.security.hostile import body
from tests.support.nightly import by_day

REQUESTS = by_day(10_000, 50_000)
SHARDS = by_day(2, 10)

CHAT = "/v1/chat/completions"
PATHS: Mapping[str, JsonObject] = {
    "/v1/completions": {"prompt": "hi", "max_tokens": 5},
    CHAT: {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 5},
    "/v5/completions": {"prompt": "hi", "max_tokens": 5},
    "/inference/v1/chat/completions": {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 5},
}
PLAIN = ("zzmodel",)
HONEST: Mapping[str, tuple[str, ...]] = {
    "replicate": ("zzowner/zzmodel", "deployments/zzowner/zzmodel", "zzowner/zzmodel:zzversion"),
    "bedrock_invoke": ("amazon.titan-zzmodel", "meta.llama3-zzmodel", "mistral.zzmodel", "deepseek.r1-zzmodel"),
}
"""Names of models of vendors that have no plain model names. The part that a client chooses begins with zz."""

OF_CLIENTS = re.compile(r"(?:(?:amazon|meta|mistral|deepseek)\\\.(?:[a-z0-9]+\\-)?)?zz[a-z]+")
"""The part that a client chooses, with the maker's prefix of the name, in an address whose special characters are
escaped."""

NO_CLIENT_S = re.compile(
    r"auth|cookie|host|forward|token|api-?key|encod|content|connection|upgrade|account|org|amz|goog"
)
"""Subjects that no header of a client may affect."""


def settings_of(profile: Profile) -> JsonObject:
    """Return a vendor's section: a key if the profile uses one, an address if it has none of its own."""
    section: JsonObject = {"profile": profile.name, "allow_private": True, "headers": {"X-Account": "operator"}}
    if profile.auth.style != "none":
        section["api_key"] = f"sk-of-the-operator-for-{profile.name}"
    if profile.base_url is None:
        section["base_url"] = f"https://{profile.name.replace('_', '-')}.vendor.example:8443/base/path"
    elif profile.placeholders:
        section["url_params"] = dict.fromkeys(profile.placeholders, "place")
    return section


ATTACKED = {name for name, profile in load_profiles().items() if profile.wires} - {"mock"}
"""The vendors that generate text."""


def every_vendor() -> Snapshot:
    """Return a configuration with every profile: any model of it, a configured one, and routes over several."""
    profiles = [profile for name, profile in load_profiles().items() if name in ATTACKED]
    own = {profile.name: HONEST.get(profile.name, PLAIN)[0] for profile in profiles}
    rows: JsonObject = {f"{name}/*": {} for name in own}
    rows |= {f"{name}/own": {"upstream_model": model} for name, model in own.items()}
    routes: JsonObject = {
        f"route{start}": {"targets": [f"{profile.name}/own" for profile in profiles[start : start + 3]]}
        for start in range(0, len(profiles), 3)
    }
    sections: JsonObject = {profile.name: settings_of(profile) for profile in profiles}
    table = {"version": 1, "vendors": sections, "models": rows, "routes": routes}
    return build_snapshot(load_text(yaml.safe_dump(table), "table.yaml", {}))


@dataclass(slots=True)
class Known:
    """The properties of a vendor's calls for harmless requests: method and address, names of headers, and the body's
    fields about streaming with and without a stream."""

    addresses: set[tuple[str, re.Pattern[str]]] = field(default_factory=set)
    headers: set[str] = field(default_factory=set)
    streams: set[tuple[bool, JsonValue]] = field(default_factory=set)

    def learn(self, call: UpstreamRequest) -> None:
        """Learn from a harmless call. The client's part of a name may be anything that stays within its segment."""
        pattern = OF_CLIENTS.sub(r"[A-Za-z0-9_.~%:@-]+", re.escape(call.url))
        self.addresses.add((call.method, re.compile(pattern)))
        self.streams.add((call.stream, body_of(call).get("stream")))
        self.headers |= {name.lower() for name in sent_headers(call)}


def body_of(call: UpstreamRequest) -> JsonObject:
    sent: JsonObject = orjson.loads(call.body or b"{}")
    return sent


def sent_headers(call: UpstreamRequest) -> Mapping[str, str]:
    return call_headers(call, call.target.credential.headers(), "req-1")


def calls(table: Snapshot, path: str, sent: JsonObject) -> Iterator[UpstreamRequest]:
    """Yield every call that a request would become, at every target that it may reach."""
    for trial in explained(table, ANYONE, path, orjson.dumps(sent)).trials:
        if isinstance(trial.outcome, CallPlan):
            assert {call.sent.target for call in trial.outcome.calls} <= {trial.target}
            yield from (call.sent for call in trial.outcome.calls)


def honest(table: Snapshot) -> Mapping[str, Known]:
    """Return the properties of harmless calls of each vendor."""
    known = {vendor: Known() for vendor in table.wildcards}
    for vendor, row in table.wildcards.items():
        for model in HONEST.get(row.targets[0].profile.name, PLAIN):
            for path, generic in PATHS.items():
                for extra in ({}, {"stream": True}):
                    for call in calls(table, path, {**generic, **extra, "model": f"{vendor}/{model}"}):
                        known[vendor].learn(call)
    return known


@pytest.fixture(scope="module")
def table() -> Snapshot:
    return every_vendor()


@pytest.fixture(scope="module")
def known(table: Snapshot) -> Mapping[str, Known]:
    """The properties of harmless calls."""
    return honest(table)


def moved(call: UpstreamRequest, known: Known) -> str | None:
    """Return the part of a call that another party than the operator chose. Return `None` if there is none."""
    target = call.target
    if not any(method == call.method and pattern.fullmatch(call.url) for method, pattern in known.addresses):
        return f"address {call.url}"
    if any(unquote(segment) in (".", "..") for segment in urlsplit(call.url).path.split("/")):
        return f"path {call.url}"
    return moved_headers(call, target, known) or moved_members(call, target, known)


def moved_headers(call: UpstreamRequest, target: Target, known: Known) -> str | None:
    """Return the same for its headers."""
    headers = call_headers(call, target.credential.headers(), "req-1")
    for name, value in target.credential.headers().items():
        if headers.getall(name) != [value]:
            return f"credential {name}"
    for name, value in headers.items():
        if name.lower() not in known.headers and NO_CLIENT_S.search(name.lower()):
            return f"header {name}"
        if not (name + value).isascii() or not (name + value).isprintable():
            return f"header {name!r}: {value!r}"
    return None


def moved_members(call: UpstreamRequest, target: Target, known: Known) -> str | None:
    """Return the same for its body: the model, and whether it is a stream."""
    sent = body_of(call)
    if "model" in sent and sent["model"] != target.upstream_model:
        return f"model {sent['model']}"
    if (call.stream, sent.get("stream")) not in known.streams:
        return f"stream {sent.get('stream')}"
    return None


def test_every_vendor_is_among_those_attacked(known: Mapping[str, Known]) -> None:
    assert known.keys() == ATTACKED
    assert [vendor for vendor, found in known.items() if not found.addresses] == []


@pytest.mark.parametrize("shard", range(SHARDS))
def test_no_request_changes_where_a_call_goes_or_whose_credential_it_bears(
    table: Snapshot, known: Mapping[str, Known], shard: int
) -> None:
    draw = Random(shard)
    models = [*(f"{vendor}/*" for vendor in table.wildcards), *table.models, *table.routes]
    paths = list(PATHS)
    reached = 0
    for number in range(REQUESTS // SHARDS):
        path = paths[number % len(paths)]
        sent = body(draw, models, PATHS[path])
        for call in calls(table, path, sent):
            reached += 1
            assert moved(call, known[call.target.vendor]) is None, sent
    # Most requests are refused. If all were, the test would prove nothing.
    assert reached > REQUESTS // SHARDS // 4


def test_a_call_that_was_moved_would_be_noticed(table: Snapshot, known: Mapping[str, Known]) -> None:
    (call,) = calls(table, CHAT, {**PATHS[CHAT], "model": "bedrock/own"})
    expected = known["bedrock"]
    assert moved(call, expected) is None
    origin = call.target.base_url
    for old, new in (
        ("https:", "http:"),
        (origin, "https://evil.example"),
        (origin, f"{origin}@evil.example"),
        (origin, f"{origin}:8443"),
        ("zzmodel", "a/b"),
        ("zzmodel", ".."),
        ("zzmodel", "%2e%2e"),
        ("zzmodel", "a?b"),
        ("/converse", "/converse?key=x"),
        ("/converse", "/converse#x"),
    ):
        assert moved(replace(call, url=call.url.replace(old, new)), expected) is not None, new
    assert moved(replace(call, method="GET"), expected) is not None
    assert moved(replace(call, body=b'{"model":"other"}'), expected) == "model other"
    assert moved(replace(call, body=b'{"stream":true}'), expected) == "stream True"
    assert moved(replace(call, headers={**call.headers, "X-Api-Key": "x"}), expected) == "header X-Api-Key"
