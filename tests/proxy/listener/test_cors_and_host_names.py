"""The effect of a listener's rules on a request's method and headers."""

from collections.abc import Mapping

from multidict import CIMultiDict, CIMultiDictProxy

from proxy.errors import ErrorFacts, GatewayError
from proxy.listener.cors_and_host_names import (
    ADMIN,
    CONTAINER_NAMES,
    EXPOSED,
    HOSTS_KEPT,
    BrowserGuard,
    Permitted,
    Preflight,
    Verdict,
)
from tests.support.looped import looped

APP = "https://app.example.com"
EVIL = "https://evil.example"
OWN = "127.0.0.1:8080"


def verdict_on(guard: BrowserGuard, method: str = "POST", **headers: str) -> Verdict | None:
    """Return the verdict on a request with these headers, `_` for each `-`, to a loopback host unless one is given."""
    fields = {"Host": OWN, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return guard.judge(method, CIMultiDictProxy(CIMultiDict(fields)))


def refused(guard: BrowserGuard, method: str = "POST", **headers: str) -> ErrorFacts:
    verdict = verdict_on(guard, method, **headers)
    assert isinstance(verdict, GatewayError)
    return verdict.facts


def headers_of(verdict: Verdict | None) -> Mapping[str, str]:
    assert isinstance(verdict, Permitted | Preflight)
    return verdict.headers


LOCAL = BrowserGuard("127.0.0.1", ["llm.example.com", "*.corp.example"], [APP, "http://localhost:*"])

LOOPBACK_NAMES = (
    *("localhost", "localhost:8080", "LOCALHOST.:1", "a.b.localhost:3000", "127.0.0.1", "127.1.2.3:80"),
    *("[::1]", "[::1]:8080", "[::ffff:127.0.0.1]:8080", *CONTAINER_NAMES),
)
FOREIGN_NAMES = (
    *("evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", "localhostt", "0.0.0.0"),
    *("192.0.2.1", "[2001:db8::1]", "127.1", "2130706433", "0x7f000001", "a@localhost", "localhost, evil.example"),
    *("corp.example", "llm.example.com.evil.example", "gateway", "\udce9", ":8080"),
)


@looped("listener", ["127.0.0.1", "127.0.0.9", "::1", "localhost"])
@looped("host", LOOPBACK_NAMES)
def test_on_loopback_every_loopback_name_is_served(listener: str, host: str) -> None:
    assert verdict_on(BrowserGuard(listener, (), ()), Host=host) is None


@looped("host", ["llm.example.com", "LLM.example.com:443", "a.corp.example", "b.a.corp.example:8080"])
def test_on_loopback_listed_names_are_served_too(host: str) -> None:
    assert verdict_on(LOCAL, Host=host) is None


@looped("host", FOREIGN_NAMES)
@looped("method", ["GET", "POST", "OPTIONS"])
def test_on_loopback_any_other_host_is_misdirected(host: str, method: str) -> None:
    facts = refused(LOCAL, method, Host=host)
    assert (facts.status, facts.code, facts.headers["x-should-retry"]) == (421, "host_not_served", "false")
    assert "server.hosts" in facts.message
    assert facts.message.isascii()


def test_a_client_without_a_host_is_no_browser() -> None:
    assert LOCAL.judge("GET", CIMultiDictProxy(CIMultiDict({}))) is None
    assert verdict_on(LOCAL, Host="") is None


@looped("listener", ["0.0.0.0", "::", "192.0.2.1", "gateway.internal"])
@looped("host", ["evil.example", "10.1.2.3:8080", "dragoman-admin:9091", "[fd00::7]:8080", "%%"])
def test_beyond_loopback_any_host_is_served_where_none_is_listed(listener: str, host: str) -> None:
    assert verdict_on(BrowserGuard(listener, (), ()), Host=host) is None


@looped("host", ["llm.example.com", "10.1.2.3:8080", "[fd00::7]:8080", "203.0.113.9", *LOOPBACK_NAMES[:9]])
def test_beyond_loopback_listed_names_and_addresses_are_served(host: str) -> None:
    assert verdict_on(BrowserGuard("0.0.0.0", ["llm.example.com"], ()), Host=host) is None


@looped("host", ["evil.example", "127.0.0.1.evil.example", "gateway", CONTAINER_NAMES[0]])
def test_beyond_loopback_other_names_are_misdirected_where_some_are_listed(host: str) -> None:
    assert refused(BrowserGuard("0.0.0.0", ["llm.example.com"], ()), Host=host).status == 421


def test_many_hosts_leave_nothing_behind_beyond_a_bound() -> None:
    guard = BrowserGuard("127.0.0.1", (), ())
    for number in range(10 * HOSTS_KEPT):
        guard.serves(f"h{number}.example")
    assert guard._served.cache_info().currsize == HOSTS_KEPT  # type: ignore[attr-defined]  # it is an lru_cache


def test_an_exchange_is_in_force_at_once() -> None:
    guard = BrowserGuard("127.0.0.1", (), ())
    assert not guard.serves("llm.example.com")
    assert refused(guard, Origin=APP).status == 403
    guard.exchange(["llm.example.com"], [APP])
    assert guard.serves("llm.example.com")
    assert isinstance(verdict_on(guard, Origin=APP), Permitted)


@looped("method", ["GET", "HEAD", "POST", "PUT", "OPTIONS"])
@looped(
    "origin",
    [
        *(EVIL, "null", "", "file://", "chrome-extension://abc", "http://127.0.0.1", "http://127.0.0.1:8081"),
        *("https://app.example.com.evil.example", "http://app.example.com", "ftp://127.0.0.1:8080", f"{APP}, {APP}"),
    ],
)
def test_a_page_of_another_origin_is_refused_by_name(method: str, origin: str) -> None:
    facts = refused(LOCAL, method, Origin=origin)
    assert (facts.status, facts.code) == (403, "origin_not_allowed")
    assert f"'{origin}'" in facts.message
    assert "server.cors.origins" in facts.message


def test_a_long_or_odd_origin_is_shown_short_and_plain() -> None:
    facts = refused(LOCAL, Origin="\udcff\x01é" + "x" * 5000)
    assert len(facts.message) < 300
    assert facts.message.isascii()
    assert facts.message.isprintable()


def test_the_admin_listener_names_its_own_setting_and_no_origins() -> None:
    guard = BrowserGuard("127.0.0.1", (), (), ADMIN)
    assert "server.admin.hosts" in refused(guard, Host="evil.example").message
    assert "cors" not in refused(guard, Origin=EVIL).message


@looped(
    ("host", "origin"),
    [
        (OWN, "http://127.0.0.1:8080"),
        ("localhost", "http://localhost"),
        ("LocalHost:8080", "http://localhost:8080"),
        ("[::1]:8080", "http://[::1]:8080"),
        ("llm.example.com", "https://llm.example.com"),  # TLS ended at a proxy
    ],
)
def test_a_page_of_the_listener_s_own_origin_passes_without_more(host: str, origin: str) -> None:
    assert verdict_on(BrowserGuard("127.0.0.1", ["llm.example.com"], ()), Host=host, Origin=origin) is None


def test_a_page_that_its_browser_calls_same_origin_passes_behind_a_proxy_that_changes_the_host() -> None:
    assert verdict_on(LOCAL, Origin="https://llm.corp", Sec_Fetch_Site="same-origin") is None
    assert refused(LOCAL, Origin="https://llm.corp", Sec_Fetch_Site="same-site").status == 403
    assert refused(LOCAL, Origin="https://llm.corp", Sec_Fetch_Site="none").status == 403
    assert refused(LOCAL, Host="evil.example", Origin="http://evil.example", Sec_Fetch_Site="same-origin").status == 421


@looped("site", ["cross-site", "same-site", "", "anything"])
@looped(("method", "mode"), [("GET", "no-cors"), ("GET", ""), ("HEAD", "cors"), ("POST", "navigate")])
def test_a_browser_that_names_no_origin_is_refused_for_other_sites(site: str, method: str, mode: str) -> None:
    facts = refused(LOCAL, method, Sec_Fetch_Site=site, Sec_Fetch_Mode=mode)
    assert (facts.status, facts.code) == (403, "origin_not_allowed")


@looped(
    ("method", "headers"),
    [
        ("GET", {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}),  # typed in
        ("GET", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}),  # a link of a wiki
        ("GET", {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "no-cors"}),
        ("POST", {"Sec-Fetch-Mode": "cors"}),  # fetch() of Node
        ("POST", {}),
        ("OPTIONS", {"Access-Control-Request-Method": "POST"}),  # no Origin, so no browser
    ],
)
def test_clients_that_are_no_foreign_pages_pass(method: str, headers: Mapping[str, str]) -> None:
    assert verdict_on(LOCAL, method, **{name.replace("-", "_"): value for name, value in headers.items()}) is None


@looped("method", ["GET", "POST", "OPTIONS"])
@looped("origin", [APP, "http://localhost:5173"])
def test_a_page_of_a_listed_origin_may_read_the_answer(method: str, origin: str) -> None:
    verdict = verdict_on(LOCAL, method, Origin=origin, Sec_Fetch_Site="cross-site")
    assert headers_of(verdict) == {
        "access-control-allow-origin": origin,
        "access-control-expose-headers": EXPOSED,
    }
    assert isinstance(verdict, Permitted)


SDK = "authorization,content-type,x-stainless-arch,x-stainless-lang,x-stainless-os"


def test_a_preflight_of_a_listed_origin_is_answered_with_what_it_asks_for() -> None:
    wanted = {"Access_Control_Request_Method": "POST", "Access_Control_Request_Headers": SDK}
    verdict = verdict_on(LOCAL, "OPTIONS", Origin=APP, **wanted)
    assert isinstance(verdict, Preflight)
    assert verdict.headers == {
        "access-control-allow-origin": APP,
        "access-control-allow-methods": "GET, POST, DELETE",
        "access-control-allow-headers": SDK,
        "access-control-max-age": "7200",
    }


@looped("wanted", ["", "*é", "a\x00b", "a;b", ",", "a,,b", ", ".join(["x-y"] * 65), "x" * 2049, "a b", "a\r\nb"])
def test_header_names_that_are_none_or_too_many_are_not_echoed(wanted: str) -> None:
    fields = {"Access_Control_Request_Method": "POST", "Access_Control_Request_Headers": wanted}
    assert "access-control-allow-headers" not in headers_of(verdict_on(LOCAL, "OPTIONS", Origin=APP, **fields))


def test_a_page_of_the_internet_may_reach_a_private_network_where_its_origin_is_listed_by_name() -> None:
    asked = {"Access_Control_Request_Method": "POST", "Access_Control_Request_Private_Network": "true"}
    name = "access-control-allow-private-network"
    assert headers_of(verdict_on(LOCAL, "OPTIONS", Origin=APP, **asked))[name] == "true"
    anybody = BrowserGuard("127.0.0.1", (), ["*"])
    assert name not in headers_of(verdict_on(anybody, "OPTIONS", Origin=APP, **asked))


@looped("origin", [EVIL, "null", "", "x\r\ny: z"])
def test_where_any_page_may_call_no_origin_is_echoed(origin: str) -> None:
    anybody = BrowserGuard("127.0.0.1", (), ["*", APP])
    for method in ("GET", "POST", "OPTIONS"):
        headers = headers_of(verdict_on(anybody, method, Origin=origin, Access_Control_Request_Method="POST"))
        assert headers["access-control-allow-origin"] == "*"


def test_cookies_are_never_allowed() -> None:
    for guard in (LOCAL, BrowserGuard("127.0.0.1", (), ["*"])):
        for method in ("GET", "OPTIONS"):
            verdict = verdict_on(guard, method, Origin=APP, Access_Control_Request_Method="POST")
            assert "access-control-allow-credentials" not in headers_of(verdict)


@looped(("origins", "shown"), [(["https://app.example.com"], "https://app.example.com"), (["*"], "*")])
def test_a_browser_may_show_a_page_where_the_time_went_if_that_is_told(origins: list[str], shown: str) -> None:
    guard = BrowserGuard("127.0.0.1", (), origins, timing=True)
    asked = verdict_on(guard, origin="https://app.example.com")
    assert headers_of(asked)["timing-allow-origin"] == shown
    assert "server-timing" in headers_of(asked)["access-control-expose-headers"]
    preflight = {"access-control-request-method": "POST", "origin": "https://app.example.com"}
    assert "timing-allow-origin" not in headers_of(verdict_on(guard, "OPTIONS", **preflight))
    guard.exchange((), origins)
    assert "timing-allow-origin" not in headers_of(verdict_on(guard, origin="https://app.example.com"))
    # Without configured origins of pages, no response is for browsers.
    assert verdict_on(BrowserGuard("127.0.0.1", (), (), timing=True)) is None
