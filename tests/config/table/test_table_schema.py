"""The sections of a table: optional keys, short forms, and what is never shown."""

import pytest
from pydantic import ValidationError

from config.table.table_schema import GatewayConfig
from tests.config.tables import load


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
