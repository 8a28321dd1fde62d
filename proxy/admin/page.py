"""The operator's page as HTML. It works without a script; with the script, it updates itself. Pure."""

from typing import Final

from proxy.admin import hour_section, page_sections
from proxy.admin.markup.html import Markup, element, joined
from proxy.admin.page_assets import SCRIPT, STYLE
from proxy.admin.page_formatting import moment
from proxy.admin.page_model import StatusPage

_SECTIONS: Final = (
    ("overview", "Overview", page_sections.overview),
    ("hour", "Last hour", hour_section.last_hour),
    ("warnings", "Warnings", page_sections.warnings),
    ("deployments", "Deployments", page_sections.deployments),
    ("routes", "Routes", page_sections.routes),
    ("failures", "Failed requests", page_sections.failures),
    ("limits", "Limits and budgets", page_sections.limits),
    ("workers", "Workers", page_sections.workers),
    ("reloads", "Reloads", page_sections.reloads),
    ("models", "Vendors and models", page_sections.vendors_and_models),
)

_HEAD: Final = element(
    "head",
    element("meta", charset="utf-8"),
    element("meta", name="viewport", content="width=device-width, initial-scale=1"),
    element("meta", name="robots", content="noindex"),
    element("title", "Dragoman"),
    element("link", rel="icon", href="data:,"),
    element("style", Markup(STYLE)),
)

_HEADER: Final = element(
    "header",
    element("h1", "Dragoman"),
    element("p", "This page shows the state at the time when it was loaded.", id="updated", role="status"),
    element("button", "Pause updates", id="pause", type="button", hidden=True),
    element("a", "Refresh", href="", class_="button"),
)


def render(page: StatusPage) -> str:
    """Return the whole page."""
    sections = {name: make(page) for name, _, make in _SECTIONS}
    links = [element("a", heading, href=f"#{name}") for name, heading, _ in _SECTIONS if sections[name]]
    body = element(
        "body",
        element("a", "Skip to the content", href="#main", class_="skip"),
        _HEADER,
        element("nav", element("ul", *(element("li", link) for link in links)), aria_label="Sections"),
        element("main", page_sections.headline(page), joined(sections.values()), _footer(page), id="main"),
        element("script", Markup(SCRIPT)),
    )
    return f"<!doctype html>{element('html', _HEAD, body, lang='en')}"


def _footer(page: StatusPage) -> Markup:
    json = element("a", "/status", href="/status")
    metrics = element("a", "/metrics", href="/metrics")
    return element(
        "p",
        "As of ",
        moment(page.view.now),
        " UTC. The same as JSON for scripts: ",
        json,
        "; numbers over time: ",
        metrics,
        ".",
        class_="note",
    )
