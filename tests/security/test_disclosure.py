"""The finder of a vulnerability can find out how to report it."""

from pathlib import Path

from tests.security.floor import ROOT
from tests.support.looped import looped

TEXT = (ROOT / "SECURITY.md").read_text("utf-8")


@looped(
    "promise",
    ["in private", "90 days", "latest minor release", "100 times", "prompt injection", "exactly once", "advisory"],
)
def test_the_policy_says_how_to_report_and_what_is_promised(promise: str) -> None:
    assert promise in " ".join(TEXT.split())


def test_the_readme_leads_to_it() -> None:
    assert "(SECURITY.md)" in (ROOT / "README.md").read_text("utf-8")


def test_what_it_links_to_is_there() -> None:
    assert Path(ROOT / "deploy" / "floors.yaml").is_file()
    assert "(deploy/floors.yaml)" in TEXT
