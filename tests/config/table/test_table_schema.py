"""The sections of a config file: optional keys, short forms, and the values that are never printed."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from config.sections.failover_section import CircuitBreakerSection, RetriesSection, RetryBudgetSection
from config.sections.media_section import MediaSection
from config.sections.section import Section, built_in, settings_of
from config.table.table_schema import GatewayConfig, ModelSettings, TimeoutsSection
from providers.target import DEFAULT_SCHEMES
from tests.config.tables import load
from tests.support.looped import looped

GUIDE = (Path(__file__).parents[3] / "docs" / "configure" / "reliability.md").read_text(encoding="utf-8")


def test_what_is_not_written_has_the_documented_defaults() -> None:
    server = GatewayConfig(version=1).server
    assert (server.host, server.port, server.admin.port, server.admin.token) == ("127.0.0.1", 8080, 9091, None)
    assert (server.max_body, server.drain_timeout, server.watch, server.log.form) == (33_554_432, 600.0, True, "json")
    limits = server.limits
    assert (limits.requests, limits.streams, limits.body_bytes) == (2000, 4000, 268_435_456)


def test_a_table_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        GatewayConfig(version=1).server.__setattr__("port", 1)


def test_a_table_shows_no_secret() -> None:
    config = load('version: 1\nvendors: {v: {api_key: "${KEY}"}}\nmodels: {v/m: {}}', {"KEY": "canary"}).config
    assert "canary" not in repr(config)
    assert "canary" not in config.model_dump_json()


def test_an_error_of_the_models_hides_the_input() -> None:
    with pytest.raises(ValidationError) as caught:
        GatewayConfig.model_validate({"version": 1, "vendors": {"v": {"api_key": ["canary"], "base_url": "canary"}}})
    assert "canary" not in str(caught.value)


def test_a_vendor_a_model_and_a_deployment_may_say_nothing() -> None:
    table = "version: 1\ndefaults:\nvendors: {v: }\nmodels:\n  v/m:\n  v/n:\n    deployments:\n      a:\n"
    assert load(table).config == load(table.replace(":\n  v/n", ": {}\n  v/n").replace(": }", ": {}}")).config
    assert set(load(table).config.models) == {"v/m", "v/n"}


def below(section: type[Section], key: str = "") -> Iterator[tuple[str, type[Section], str]]:
    """Yield each field of a section and of its subsections: its dotted key, its section, and its name there."""
    for name, field in section.model_fields.items():
        yield key + name, section, name
        if isinstance(field.default, Section):
            yield from below(type(field.default), f"{key}{name}.")


def test_all_that_a_deployment_may_inherit_is_declared_as_a_setting() -> None:
    declared = {key for key, section, name in below(ModelSettings) if name in settings_of(section)}
    assert declared == {key for key, _, _ in below(ModelSettings)}


@looped("keys", ["connect", "first_event", "answer", "idle", "total", "keep_alive", "progress`, `stream"])
def test_the_guide_gives_the_timeouts_that_are_built_in(keys: str) -> None:
    line = next(line for line in GUIDE.splitlines() if line.startswith(f"| `{keys}` | "))
    shown = line.rpartition(" | ")[2].removesuffix(" |").split(", or ")[0]
    declared = settings_of(TimeoutsSection)
    assert shown == ", ".join(str(declared[key].built_in) for key in keys.split("`, `"))


def test_the_guide_s_example_writes_the_built_in_values_of_failover() -> None:
    (block,) = [block for block in GUIDE.split("```yaml\n")[1:] if "circuit_breaker: {" in block.partition("```")[0]]
    written = yaml.safe_load(block.partition("```")[0])["defaults"]
    written["circuit_breaker"].pop("longest_cooldown")  # the example has a longer cooldown
    for section, shown in (
        (RetriesSection, written["retries"]),
        (RetryBudgetSection, written["retries"].pop("budget")),
        (CircuitBreakerSection, written["circuit_breaker"]),
    ):
        assert shown == {key: settings_of(section)[key].built_in for key in shown}


def test_both_halves_let_the_same_schemes_of_media_pass() -> None:
    assert frozenset(built_in(MediaSection, "schemes", list)) == DEFAULT_SCHEMES
