"""Guards a listener against web pages in browsers: DNS rebinding, cross-site requests, CORS.

A page can reach every listener that its user's machine can reach. Headers that a page cannot forge distinguish it from
other clients: Host has the name that the browser resolved to the address, and Origin or Sec-Fetch-Site name the page's
site (Fetch standard, Fetch Metadata). Pure: decides from a request's method and headers alone.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from multidict import istr

from config.addresses import Reach, listens_on_loopback, reach
from config.web_origins import HostPatterns, OriginPatterns, host_of
from proxy.errors import GatewayError, host_not_served, origin_not_allowed

HOST: Final = istr("Host")
ORIGIN: Final = istr("Origin")
FETCH_SITE: Final = istr("Sec-Fetch-Site")
FETCH_MODE: Final = istr("Sec-Fetch-Mode")
WANTED_METHOD: Final = istr("Access-Control-Request-Method")
WANTED_HEADERS: Final = istr("Access-Control-Request-Headers")
WANTED_NETWORK: Final = istr("Access-Control-Request-Private-Network")

CONTAINER_NAMES: Final = ("host.docker.internal", "host.containers.internal")
"""Docker Desktop's and Podman's names of the host machine, to whose loopback they forward. No page can have these
names, since ICANN has reserved `.internal` for private use."""

_LOOPBACK: Final[frozenset[Reach]] = frozenset({"loopback"})
_ADDRESSES: Final[frozenset[Reach]] = frozenset({"loopback", "private", "public"})

HOSTS_KEPT: Final = 64
"""The most Host values for which a guard caches whether they are served."""

EXPOSED: Final = ", ".join(
    (
        "request-id, x-request-id",
        "x-dragoman-deployment, x-dragoman-attempts, x-dragoman-emulated, x-dragoman-dropped, x-dragoman-max-tokens",
        "x-dragoman-budget-route, x-dragoman-cache, x-dragoman-guarded, age, traceresponse",
        "x-dragoman-upstream-request-id, server-timing",
        "x-should-retry, retry-after, retry-after-ms",
        "x-ratelimit-limit-requests, x-ratelimit-remaining-requests, x-ratelimit-reset-requests",
        "x-ratelimit-limit-tokens, x-ratelimit-remaining-tokens, x-ratelimit-reset-tokens",
        *(
            f"anthropic-ratelimit-{what}-{which}"
            for what in ("requests", "tokens", "input-tokens", "output-tokens")
            for which in ("limit", "remaining", "reset")
        ),
    )
)
"""Response headers that a page's script may read besides the headers that the Fetch standard lists: headers that SDKs
read in OpenAI's and Anthropic's responses, and the gateway's own."""

PREFLIGHT_KEPT: Final = 7200
"""The seconds for which a browser may cache the response to a preflight: Chrome's maximum."""

_HEADER_NAMES: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+(?: ?, ?[A-Za-z0-9!#$%&'*+.^_`|~-]+){0,63}")
_MAX_HEADER_NAMES: Final = 2048


@dataclass(frozen=True, slots=True)
class Permitted:
    """A request of a page of an allowed origin. `headers` let its script read the response."""

    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Preflight:
    """A preflight for a page of an allowed origin. `headers` are the headers of the response."""

    headers: Mapping[str, str]


Verdict = Permitted | Preflight | GatewayError


@dataclass(frozen=True, slots=True)
class SettingNames:
    """The names of the settings for a listener's hosts and origins, for messages. `origins` is `None` if the listener
    has no setting for origins."""

    hosts: str
    origins: str | None


PUBLIC: Final = SettingNames("server.hosts", "server.cors.origins")
ADMIN: Final = SettingNames("server.admin.hosts", None)


class BrowserGuard:
    """Judges the requests to a listener that is bound to `listener`, a host name or an address. `hosts` and `origins`
    are the lists in the configuration under `settings`."""

    __slots__ = ("_listener", "_origins", "_served", "_settings", "_timing", "rules")

    def __init__(
        self,
        listener: str,
        hosts: Sequence[str],
        origins: Sequence[str],
        settings: SettingNames = PUBLIC,
        *,
        timing: bool = False,
    ) -> None:
        self._listener = listener
        self._settings = settings
        self.exchange(hosts, origins, timing=timing)

    def exchange(self, hosts: Sequence[str], origins: Sequence[str], *, timing: bool = False) -> None:
        """Replace the lists for later requests. With `timing`, browsers may show a request's times to pages of allowed
        origins."""
        self._timing = timing
        self._origins = OriginPatterns.of(origins)
        self.rules = object()
        """The identity of the current lists. Heads that these lists have permitted need not be judged again while it is
        the same."""
        self._served: Callable[[str], bool] = lru_cache(HOSTS_KEPT)(_host_rule(self._listener, hosts))

    def serves(self, host: str) -> bool:
        """Return whether requests with this Host are served. Requests without a Host are served, since no browser sends
        them."""
        return self._served(host)

    def judge(self, method: str, headers: Mapping[str, str]) -> Verdict | None:
        """Return the verdict on a request; `None` if no page sent it, or a page of this listener did."""
        host = headers.get(HOST, "")
        if not self._served(host):
            return host_not_served(host, self._settings.hosts)
        origin = headers.get(ORIGIN)
        if origin is None:
            site = headers.get(FETCH_SITE)
            if site is None or _own_page_or_link(site, method, headers):
                return None
            return origin_not_allowed(None, self._settings.origins)
        return self._of_page(origin, host, method, headers)

    def _of_page(self, origin: str, host: str, method: str, headers: Mapping[str, str]) -> Verdict | None:
        if not self._origins.match(origin):
            if _same_origin(origin, host, headers):
                return None
            if not self._origins.any:
                return origin_not_allowed(origin, self._settings.origins)
        if method == "OPTIONS" and WANTED_METHOD in headers:
            return Preflight(self._preflight(origin, headers))
        return Permitted(self._readable(origin))

    def _readable(self, origin: str) -> dict[str, str]:
        # Access-Control-Allow-Credentials is absent, so that a browser does not add cookies or credentials by itself.
        allowed = "*" if self._origins.any else origin
        shown = {"timing-allow-origin": allowed} if self._timing else {}
        return {"access-control-allow-origin": allowed, "access-control-expose-headers": EXPOSED, **shown}

    def _preflight(self, origin: str, headers: Mapping[str, str]) -> dict[str, str]:
        answer = self._readable(origin)
        del answer["access-control-expose-headers"]
        answer.pop("timing-allow-origin", None)
        answer["access-control-allow-methods"] = "GET, POST, DELETE"
        answer["access-control-max-age"] = str(PREFLIGHT_KEPT)
        # The requested names are returned, since SDKs add headers with every version, and `*` would not cover
        # Authorization.
        wanted = headers.get(WANTED_HEADERS, "").strip()
        if len(wanted) <= _MAX_HEADER_NAMES and _HEADER_NAMES.fullmatch(wanted):
            answer["access-control-allow-headers"] = wanted
        if not self._origins.any and headers.get(WANTED_NETWORK) == "true":
            answer["access-control-allow-private-network"] = "true"
        return answer


def _host_rule(listener: str, hosts: Sequence[str]) -> Callable[[str], bool]:
    """Return a function that decides on the value of a Host header.

    On other interfaces than loopback, addresses are accepted besides the listed names. Probes and scrapers call a pod
    by its address, and a page that rebinds its own name cannot have an address as its name.
    """
    local = listens_on_loopback(listener)
    if not local and not hosts:
        return lambda host: True
    patterns = HostPatterns.of([*hosts, *(CONTAINER_NAMES if local else ())])
    reaches = _LOOPBACK if local else _ADDRESSES

    def serves(host: str) -> bool:
        if not host:
            return True
        name = host_of(host)
        return name is not None and (patterns.match(name) or reach(name) in reaches)

    return serves


def _own_page_or_link(site: str, method: str, headers: Mapping[str, str]) -> bool:
    """Return whether a request without Origin comes from the listener's own page or from a link.

    Browsers omit Origin in a GET whose response the page's script cannot read, such as for an image. Following a link,
    for example to the status page, is an act of the user.
    """
    return site in ("same-origin", "none") or (method in ("GET", "HEAD") and headers.get(FETCH_MODE) == "navigate")


def _same_origin(origin: str, host: str, headers: Mapping[str, str]) -> bool:
    """Return whether the page came from this listener.

    The scheme is not compared, since a proxy in front may terminate TLS. The proxy may also have changed the Host. In
    that case Sec-Fetch-Site decides. Browsers send it only to https and loopback addresses, for which no name can be
    rebound.
    """
    scheme, _, authority = origin.partition("://")
    if scheme in ("http", "https") and authority and authority == host.lower():
        return True
    return headers.get(FETCH_SITE) == "same-origin"
