"""The text of each section for a page's values."""

import re
from dataclasses import replace

import pytest

from proxy.admin import page_sections as sections
from proxy.admin.page_model import PageQuery, status_page
from proxy.admin.recent_requests import NO_USES
from proxy.limits.limit import Period, Unit
from proxy.limits.limit_views import LimitKind, LimitView
from tests.proxy.admin.kit import RELOADS, TABLE, failed, page, status, view
from tests.proxy.admin.markup.test_html import read
from tests.proxy.kit.tables import snapshot
from tests.support.looped import looped


def said(markup: str) -> str:
    """Return the text of a section, with its parts separated."""
    parted = re.sub(r"</(td|th|small|li|dt|dd|p|summary|span|div|code|caption)>|<br>|<small>", r" \g<0> ", markup)
    return re.sub(r"\s+", " ", read(parted).text)


def test_the_headline_says_whether_all_is_well() -> None:
    shown = sections.headline(page())
    assert "▲ Ready, but the config file on disk is refused: a restart would fail; 4 of 5 deployments not up." in shown
    assert "headline warn" in shown
    assert 'role="status"' in shown
    well = replace(status(), states={}, limited={}, recent=NO_USES)
    refused = sections.headline(page(status=well))
    assert ("headline warn" in refused, "deployments" in refused) == (True, False)
    taken = status_page(view(status=well), RELOADS[1:], (), PageQuery())
    assert "✓ Ready, and 5 deployments up." in sections.headline(taken)
    assert "headline good" in sections.headline(taken)
    assert "Not ready: it takes no requests now" in sections.headline(page(status=replace(well, ready=False)))


def test_the_overview_has_the_figures_of_the_whole() -> None:
    text = said(sections.overview(page()))
    for fact in ("Requests 20 of the last 5 min", "Errors 5 (25.0%)", "Refused 1 (5.0%)", "In flight 3", "1 d 1 h"):
        assert fact in text
    assert "Log lines dropped 2" in text
    assert "/var/ledger.db, 0.5 s behind, 3 rows waiting" in text
    assert "Ledger none" in said(sections.overview(page(ledger=None)))


def test_a_deployment_tells_its_state_probe_reason_and_figures() -> None:
    text = said(sections.deployments(page()))
    assert "Deployments: 1 circuit open, 1 cooldown, 1 half-open, 1 limited" in text
    failed = "server, status 500: it broke 2026-09-21 14:12:20"
    assert f"v/m/a ✕ circuit open next probe in 12.0 s {failed} 20 5 (25.0%) 1 (5.0%)" in text
    assert " 2.0 37.5%" in text
    assert "■ cooldown next probe in 70.0 s" in text
    assert "◐ half-open next request is a probe" in text
    assert "▲ limited 4 at once (operator), 4 in flight, 2 waiting" in text


def test_what_is_left_out_is_said_with_the_way_to_it() -> None:
    models = "".join(f"  mock/m{number}: {{}}\n" for number in range(300))
    many = snapshot("vendors: {mock: {}}\nmodels:\n" + models)
    shown = sections.deployments(page(snapshot=many, query=PageQuery("mock", "m")))
    assert "200 of 300 are shown" in shown
    assert 'href="?vendor=mock&amp;q=m&amp;rows=all"' in shown
    assert "of 5 deployments match" in sections.deployments(page(query=PageQuery(text="m/a")))
    assert "match" not in sections.deployments(page())


def test_the_filter_keeps_what_was_asked_for() -> None:
    shown = sections.deployments(page(query=PageQuery("v", '"><b>')))
    assert '<option value="v" selected>v</option>' in shown
    assert 'value="&quot;&gt;&lt;b&gt;"' in shown
    assert 'href="?"' in shown


def test_names_may_be_broken_after_their_slashes_only() -> None:
    assert "v/<wbr>m/<wbr>a</th>" in sections.deployments(page())
    assert "v/<wbr>m</th>" in sections.vendors_and_models(page())
    assert "1 attempt: v/<wbr>m/<wbr>a" in sections.failures(
        page(status=replace(status(), failed=(replace(failed(), attempts=failed().attempts[:1]),)))
    )


@pytest.mark.parametrize(
    ("state", "told"),
    [("off", "none no Redis: cooldowns are this gateway's own"), ("up", "connected cooldowns, by Redis")],
)
def test_redis_is_named_only_where_there_is_one(state: str, told: str) -> None:
    assert f"Shared state {told}" in said(sections.overview(page(status=replace(status(), shared=state))))


def test_vendors_lead_to_their_deployments() -> None:
    shown = sections.vendors_and_models(page())
    assert '<a href="?vendor=v">v</a>' in shown
    assert "0 of 4 up" in shown
    assert "<summary>2 models</summary>" in shown


def test_limits_show_what_is_used_and_which_is_reached() -> None:
    shown = sections.limits(page())
    text = said(shown)
    assert "team search 1,000 tokens per day" in text
    assert "900 tokens" in text
    assert "10.00 USD per month reject at 100%" in text
    assert "✕ reached" in text
    assert 'value="0.900" aria-label="90% used"' in shown
    assert sections.limits(page(status=replace(status(), limits=()))) == ""


@looped(
    ("limit", "used", "words"),
    [
        (10**7, 41 * 10**5, ("0.010 USD per month", "0.0041 USD", "41%")),
        (10**9, 5, ("1.00 USD per month", "0.0000000050 USD", "0%")),
        (5 * 10**11, 10**10, ("500.00 USD per month", "10.00 USD", "2%")),
    ],
)
def test_what_is_used_agrees_with_its_share(limit: int, used: int, words: tuple[str, ...]) -> None:
    view = LimitView("team search", LimitKind.BUDGET, Unit.USD, Period.MONTH, limit, used)
    text = said(sections.limits(page(status=replace(status(), limits=(view,)))))
    for each in words:
        assert each in text


def test_workers_on_another_table_are_told_apart() -> None:
    text = said(sections.workers(page()))
    assert "worker 1 (process 7)" in text
    assert text.count("not the current one") == 1
    assert sections.workers(page(workers=None)) == ""


def test_reloads_tell_what_changed_or_why_not() -> None:
    text = said(sections.reloads(page()))
    assert "✕ refused" in text
    assert "no vendor named v" in text
    assert "✓ taken" in text
    assert "model mock/two added" in text


def test_warnings_are_those_of_the_table() -> None:
    assert "be careful" in sections.warnings(replace(page(), warnings=["be careful"]))
    assert sections.warnings(page()) == ""


def test_a_failed_request_tells_its_attempts_and_their_causes() -> None:
    shown = sections.failures(page())
    text = said(shown)
    assert "502 upstream error upstream_error" in text
    assert "req-1" in text
    assert "2 attempts: v/m/a server (500)" in text
    assert "v/m/a: server (500) after 120 ms it broke" in text
    assert "None since the start" in sections.failures(page(status=replace(status(), failed=())))


def test_older_failures_are_folded_and_each_has_an_id_of_its_own() -> None:
    same = tuple(replace(failed(1), request_id="mine") for _ in range(100))
    shown = sections.failures(page(status=replace(status(), failed=same)))
    assert "<summary>80 older</summary>" in shown
    ids = re.findall(r'<tr role="row" id="(r-[^"]*)"', shown)
    assert len(ids) == len(set(ids)) == 100


def test_a_route_tells_its_strategy_and_its_targets_with_their_shares_and_why_one_is_skipped() -> None:
    text = said(sections.routes(page()))
    assert "Route Of Strategy State Targets fast all priority ✓ up" in text
    assert "mock/echo ✓ up v/m ▲ limited 2 of 4 deployments available" in text
    split = "{policy: weighted, targets: TARGETS, fallbacks: {context_window: [mock/echo]}}"
    targets = "[{target: v/m/a, weight: 3}, mock/echo, {target: v/m/b, weight: 0}]"
    routed = TABLE.partition("routes:")[0] + f"routes: {{split: {split.replace('TARGETS', targets)}}}\n"
    weighted = snapshot(routed)
    text = said(sections.routes(page(snapshot=weighted)))
    assert "split all weighted ▲ in part 2 of 3 targets skipped" in text
    assert (
        "v/m/a, 75% ✕ circuit open skipped: circuit open after server, status 500: it broke, next probe in 12 s"
    ) in text
    assert "mock/echo, 25% ✓ up" in text
    assert "v/m/b, 0% ■ cooldown skipped: weight 0: out of service" in text
    assert "on context_window: mock/echo" in text
    assert sections.routes(page(snapshot=snapshot("vendors: {mock: {}}\nmodels: {mock/a: {}}\n"))) == ""
