"""The operator's page in Chromium: with scripts and without, by keyboard, in both colour schemes, on a phone."""

import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from proxy.process.assemble_app import Addresses, WholeGateway, running
from proxy.process.load_table import Source
from tests.e2e.browser.browser import CHROMIUM, SystemBrowser
from tests.proxy.kit.gateway_rig import ask
from tests.proxy.kit.raw_client import exchange, request
from tests.proxy.kit.tables import digest_of

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(180),
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
    pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed"),
]

TOKEN = "admin-token-canary"
TABLE = f"""\
version: 1
server: {{admin: {{token: {TOKEN}}}}}
vendors:
  mock: {{}}
  down: {{profile: openai_compatible, base_url: "http://127.0.0.1:9/v1", api_key: "", allow_private: true}}
models:
  mock/echo: {{price: {{input: 20, output: 30}}}}
  down/m: {{deployments: {{one: {{}}, two: {{concurrent: 3}}}}}}
routes:
  fast: {{policy: weighted, targets: [{{target: mock/echo, weight: 3}}, down/m]}}
  nowhere: {{targets: [down/m]}}
teams:
  search:
    keys: ["{digest_of("k")}"]
    models: ["*"]
    limits: {{requests_per_minute: 60}}
    budget: {{usd: 5, per: month}}
"""
HOSTILE = "mock/<img src=x onerror=alert(1)><script>alert(2)</script>"


@pytest.fixture(scope="module")
def browser() -> Iterator[SystemBrowser]:
    """The browser of all tests. Each test has a page of its own."""
    made = SystemBrowser()
    yield made
    made.close()


async def complete(app: WholeGateway, model: str) -> None:
    port = urlsplit(app.url).port
    assert port is not None
    await exchange(port, request("POST", "/v1/completions", ask(model), {"Authorization": "Bearer k"}))


@asynccontextmanager
async def up(folder: Path) -> AsyncIterator[WholeGateway]:
    path = folder / "t.yaml"
    path.write_text(TABLE, encoding="utf-8")
    source = Source(path, {})
    async with running(source, source.load_to_serve(), Addresses("127.0.0.1", 0, "127.0.0.1", 0), BytesIO()) as app:
        yield app


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[WholeGateway]:
    """A gateway with a vendor that is down, a request that failed there, and one with a hostile name."""
    async with up(tmp_path) as made:
        for model in ("mock/echo", "down/m", HOSTILE):
            await complete(made, model)
        path = tmp_path / "t.yaml"
        path.write_text(TABLE.replace("usd: 5", "usd: 6"), encoding="utf-8")
        await made.reloader.reload()
        yield made


async def opened(browser: SystemBrowser, app: WholeGateway, path: str = "/", **options: object) -> SystemBrowser:
    usual: dict[str, object] = {"scripts": True, "scheme": "light", "width": 1280, "password": TOKEN}
    assert await browser.take("open", url=app.admin_url + path, **{**usual, **options}) == 200
    return browser


async def text_of(page: SystemBrowser, selector: str) -> str:
    return str(await page.take("evaluate", code=f"document.querySelector({selector!r}).innerText"))


async def focused(page: SystemBrowser) -> str:
    return str(await page.take("evaluate", code="document.activeElement.innerText"))


async def test_without_scripts_the_page_is_whole_and_filtering_works(browser: SystemBrowser, app: WholeGateway) -> None:
    page = await opened(browser, app, scripts=False)
    text = await text_of(page, "main")
    for part in ("Overview", "down/m/one", "Failed requests", "team search", "changed: budget", HOSTILE):
        assert part in text
    assert "mock/echo, 75% ✓ up" in await text_of(page, "#routes")
    assert await page.take("evaluate", code="document.getElementById('pause').checkVisibility()") is False
    assert str(await page.take("submit", name="q", value="echo")).endswith("?vendor=&q=echo")
    names = "[...document.querySelectorAll('#deployments tbody th')].map((each) => each.innerText)"
    assert await page.take("evaluate", code=names) == ["mock/echo/default"]
    assert await page.take("told") == []


async def test_it_updates_itself_and_keeps_focus_and_what_is_open(browser: SystemBrowser, app: WholeGateway) -> None:
    page = await opened(browser, app)
    opening = "(() => { const one = document.querySelector('#failures summary'); one.focus(); one.click();"
    await page.take("evaluate", code=opening + "window.kept = one; })()")
    before = await focused(page)
    await complete(app, "nobody/else")
    await page.take("forward", seconds=5)
    await page.take("wait", code="document.querySelector('#failures').innerText.includes('nobody/else')")
    assert await focused(page) == before
    assert await page.take("evaluate", code="window.kept.isConnected && window.kept.parentNode.open") is True
    assert await page.take("evaluate", code="window.kept === document.activeElement") is True
    assert await page.take("told") == []


async def test_updates_can_be_paused_and_a_gateway_that_is_gone_is_told(browser: SystemBrowser, tmp_path: Path) -> None:
    async with up(tmp_path) as app:
        page = await opened(browser, app)
        await page.take("evaluate", code="document.getElementById('pause').click()")
        await complete(app, "nobody/else")
        await page.take("forward", seconds=30)
        assert await text_of(page, "#updated") == "Updates are paused."
        assert "nobody/else" not in await text_of(page, "main")
        await page.take("evaluate", code="document.getElementById('pause').click()")
        await page.take("wait", code="document.querySelector('main').innerText.includes('nobody/else')")
    await page.take("forward", seconds=5)
    await page.take("wait", code="document.getElementById('updated').innerText.startsWith('Not updated')")
    assert "nobody/else" in await text_of(page, "main")


async def test_the_keyboard_reaches_everything_in_order(browser: SystemBrowser, app: WholeGateway) -> None:
    page = await opened(browser, app)
    seen = []
    for _ in range(12):
        await page.take("press", key="Tab")
        seen.append(await focused(page))
    assert seen[:4] == ["Skip to the content", "Pause updates", "Refresh", "Overview"]
    assert "Reloads" in seen
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert await page.take("evaluate", code=outline) == "solid"
    await page.take("evaluate", code="document.querySelector('#by-vendor summary').focus()")
    await page.take("press", key="Enter")
    assert await page.take("evaluate", code="document.getElementById('by-vendor').open") is True
    await page.take("evaluate", code="document.querySelector('.skip').focus()")
    await page.take("press", key="Enter")
    assert await page.take("evaluate", code="location.hash") == "#main"


BACKGROUND = "getComputedStyle(document.body).backgroundColor"
LIGHT, DARK = "rgb(244, 246, 248)", "rgb(14, 18, 23)"


@pytest.mark.parametrize(
    ("scheme", "background", "width"), [("light", LIGHT, 1280), ("dark", DARK, 1280), ("dark", DARK, 390)]
)
async def test_it_is_readable_in_both_schemes_on_a_phone_and_a_screen(
    browser: SystemBrowser, app: WholeGateway, scheme: str, background: str, width: int
) -> None:
    page = await opened(browser, app, scheme=scheme, width=width)
    await page.take("evaluate", code="document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert await page.take("evaluate", code=BACKGROUND) == background
    assert await page.take("evaluate", code="document.documentElement.scrollWidth") == width
    # axe checks contrast, names, landmarks and table headers, and finds no violation.
    assert await page.take("faults") == []
    assert await page.take("told") == []


CHARTS = "[...document.querySelectorAll('#hour svg')]"
NAMES = f"{CHARTS}.map((each) => each.getAttribute('aria-label').split(' by minute')[0])"
FIT = f"""{CHARTS}.every((each) => {{
  const {{ width, height }} = each.getBoundingClientRect();
  return width > 200 && height > 50 && width === each.parentNode.getBoundingClientRect().width;
}})"""
INK = "[...document.querySelectorAll('#hour .bars')].slice(0, 3).map((each) => getComputedStyle(each).fill)"
INKS = {
    "light": ["rgb(200, 50, 60)", "rgb(180, 90, 0)", "rgb(26, 128, 71)"],
    "dark": ["rgb(255, 128, 135)", "rgb(240, 160, 75)", "rgb(95, 201, 138)"],
}


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("light", 320), ("dark", 1280), ("dark", 320)])
async def test_the_last_hour_is_drawn_and_written_without_scripts(
    browser: SystemBrowser, app: WholeGateway, scheme: str, width: int
) -> None:
    page = await opened(browser, app, scripts=False, scheme=scheme, width=width)
    assert await page.take("evaluate", code=NAMES) == [
        *("Requests by outcome", "Duration", "Cost by team", "Tokens by team", "Prompt tokens from vendors' caches"),
    ]
    assert await page.take("evaluate", code=FIT) is True
    assert await page.take("evaluate", code=INK) == INKS[scheme]
    text = await text_of(page, "#hour")
    for words in ("succeeded 1 (33.3%)", "refused 1 (33.3%)", "failed 1 (33.3%)", "none was measured in the hour"):
        assert words in text
    assert "The teams that spent most" in text
    await page.take("evaluate", code="document.querySelector('#hour-figures').open = true")
    assert await page.take("evaluate", code="document.documentElement.scrollWidth") == width
    figures = str(await page.take("evaluate", code="document.querySelector('#hour-figures').textContent"))
    assert "First token p50 / p95" in figures
    assert await page.take("told") == []


async def test_the_charts_go_on_with_the_page(browser: SystemBrowser, app: WholeGateway) -> None:
    page = await opened(browser, app)
    await page.take("evaluate", code="window.chart = document.querySelector('#hour svg')")
    await complete(app, "nobody/else")
    await page.take("forward", seconds=5)
    await page.take("wait", code="document.querySelector('#hour').innerText.includes('refused 2 (50.0%)')")
    label = "window.chart.isConnected && window.chart.getAttribute('aria-label')"
    assert "refused 2 (50.0%)" in str(await page.take("evaluate", code=label))
    namespace = "[...document.querySelectorAll('#hour path')].every((path) => path instanceof SVGPathElement)"
    assert await page.take("evaluate", code=namespace) is True
    assert await page.take("told") == []
