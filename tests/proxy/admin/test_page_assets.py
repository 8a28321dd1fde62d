"""The headers of the page allow its own script and style only."""

from base64 import b64encode
from hashlib import sha256

from proxy.admin.page_assets import PAGE_HEADERS, POLICY, SCRIPT, STYLE


def test_the_policy_names_the_script_and_the_style_by_their_hashes() -> None:
    rules = dict(rule.split(" ", 1) for rule in POLICY.split("; "))
    for name, text in (("script-src", SCRIPT), ("style-src", STYLE)):
        assert rules[name] == f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
    assert rules["default-src"] == rules["base-uri"] == rules["frame-ancestors"] == "'none'"
    assert "unsafe" not in POLICY
    assert "*" not in POLICY
    assert PAGE_HEADERS["content-security-policy"] == POLICY
    assert PAGE_HEADERS["cache-control"] == "no-store"


def test_neither_could_end_its_element_early() -> None:
    assert "</" not in SCRIPT + STYLE
    assert "<!--" not in SCRIPT + STYLE
