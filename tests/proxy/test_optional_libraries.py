"""The installation hint for a library that is missing."""

import logging
import sys

import pytest

from proxy.optional_libraries import EXTRAS, REDIS, extra_hint, missing_extra, silence
from tests.support.looped import looped
from tests.test_packaging import project

pytestmark = pytest.mark.smoke


@looped("kind", [*EXTRAS, "oidc"])
def test_where_the_tests_run_nothing_is_missing(kind: str) -> None:
    assert missing_extra(kind) is None


@pytest.mark.parametrize(
    ("kind", "module", "extra"),
    [
        ("aws", "botocore", "aws"),
        ("google", "google.auth", "gcp"),
        ("google", "requests", "gcp"),
        ("entra", "azure.identity", "azure"),
    ],
)
def test_a_missing_library_is_told_with_the_extra_to_install(
    kind: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    how = f"make extras, or pip install '.[{extra}]' in Dragoman's source"
    assert missing_extra(kind) == f"credentials of the kind {kind} need an extra: {how}"


@pytest.mark.parametrize("package", ["google", "azure"])
def test_a_package_that_is_not_there_at_all_is_missing_too(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name == package or name.startswith(f"{package}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [])
    assert missing_extra({"google": "google", "azure": "entra"}[package]) is not None


def test_every_extra_that_is_named_is_one_of_the_distribution_s() -> None:
    declared = project()["project"]["optional-dependencies"]
    assert {extra.name for extra in (*EXTRAS.values(), REDIS)} <= declared.keys()


def test_whoever_needs_an_extra_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert extra_hint(REDIS, "this needs") is None
    monkeypatch.setitem(sys.modules, "redis", None)
    assert (
        extra_hint(REDIS, "this needs")
        == "this needs an extra: make extras, or pip install '.[redis]' in Dragoman's source"
    )


def test_a_library_that_was_silenced_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("made-up-library")
    logger.warning("heard")
    silence("made-up-library")
    logging.getLogger("made-up-library.part").critical("canary")
    logger.critical("canary")
    assert [record.getMessage() for record in caplog.records] == ["heard"]
