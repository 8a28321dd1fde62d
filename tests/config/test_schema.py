"""The models, and the settings a deployment inherits."""

import pytest
from pydantic import SecretStr, ValidationError

from config.schema import (
    Deployment,
    GatewayConfig,
    Model,
    TimeoutSeconds,
    deployment_inheritance,
    deployment_named,
    effective,
    vendor_inheritance,
)
from tests.config.tables import load

TABLE = """\
    version: 1
    defaults:
      timeouts: {connect: 1s, idle: 10s}
      headers: {X-A: defaults, X-B: defaults}
      context_window: 1000
    vendors:
      v:
        profile: vllm
        api_key: "${VENDOR_KEY}"
        base_url: https://vendor.example/v1
        url_params: {resource: v, region: 7}
        timeouts: {connect: 2s, total: 20s}
        headers: {x-b: vendor}
      w: {}
    models:
      v/m:
        api_version: 2024-10-21
        completions: true
        timeouts: {first_event: 1m}
        url_params: {resource: m}
        deployments:
          one:
            base_url: https://one.example
            timeouts: {connect: 3s}
            weight: 5
            upstream_model: big
            headers: {X-B: one}
          two: {api_key: "", max_output_tokens: 9, context_window: 2000, completions: no}
      v/x: {upstream_model: any}
      w/m: {}
    """
CONFIG = load(TABLE, {"VENDOR_KEY": "canary"}).config


def test_the_deepest_level_that_says_something_counts_for_each_key() -> None:
    one = effective(CONFIG, "v", "v/m", "one")
    assert one.timeouts == TimeoutSeconds(connect=3.0, first_event=60.0, idle=10.0, total=20.0)
    assert (one.base_url, one.context_window, one.max_output_tokens) == ("https://one.example", 1000, None)
    assert (one.profile, one.api_version, one.upstream_model, one.weight) == ("vllm", "2024-10-21", "big", 5)
    assert (one.completions, one.allow_private) == (True, False)
    assert one.url_params == {"resource": "m", "region": "7"}


def test_headers_merge_by_name_whatever_their_case() -> None:
    headers = effective(CONFIG, "v", "v/m", "one").headers
    assert set(headers) == {"X-A", "X-B"}
    assert headers["X-B"] == SecretStr("one")
    assert set(effective(CONFIG, "v", "v/m", "two").headers) == {"X-A", "x-b"}


def test_an_empty_key_stops_the_inheritance() -> None:
    assert effective(CONFIG, "v", "v/m", "one").api_key == SecretStr("canary")
    assert effective(CONFIG, "v", "v/m", "two").api_key is None


def test_a_false_beats_the_true_above_it() -> None:
    assert effective(CONFIG, "v", "v/m", "two").completions is False


def test_a_model_without_deployments_has_one_called_default() -> None:
    renamed = effective(CONFIG, "v", "v/x", "default")
    assert (renamed.upstream_model, renamed.base_url, renamed.weight) == ("any", "https://vendor.example/v1", 1)
    plain = effective(CONFIG, "w", "w/m", "default")
    assert (plain.profile, plain.api_key, plain.timeouts.total) == ("w", None, 600.0)


def test_every_value_tells_where_it_was_written() -> None:
    origins = effective(CONFIG, "v", "v/m", "one").origins
    assert origins["base_url"] == ("models", "v/m", "deployments", "one", "base_url")
    assert origins["timeouts.idle"] == ("defaults", "timeouts", "idle")
    assert origins["api_key"] == ("vendors", "v", "api_key")
    assert origins["headers.X-B"] == ("models", "v/m", "deployments", "one", "headers", "X-B")
    assert "max_output_tokens" not in origins


def test_settings_show_no_secret() -> None:
    assert "canary" not in repr(effective(CONFIG, "v", "v/m", "one"))
    assert "canary" not in repr(CONFIG)
    assert "canary" not in CONFIG.model_dump_json()


@pytest.mark.parametrize(
    "names", [("x", "v/m", "one"), ("v", "v/x", "one"), ("v", "v/m", "three"), ("v", "v/m", "default")]
)
def test_a_name_that_is_not_in_the_table_has_no_settings(names: tuple[str, str, str]) -> None:
    with pytest.raises(KeyError):
        effective(CONFIG, *names)


def test_the_implicit_deployment_is_there_only_without_others() -> None:
    assert deployment_named(Model(), "default") == Deployment()
    with pytest.raises(KeyError):
        deployment_named(Model(deployments={"a": Deployment()}), "default")


def test_the_levels_are_deepest_first() -> None:
    paths = [path for path, _ in deployment_inheritance(CONFIG, "v", "v/m", "one").levels]
    assert paths == [("models", "v/m", "deployments", "one"), ("models", "v/m"), ("vendors", "v"), ("defaults",)]
    assert [path for path, _ in vendor_inheritance(CONFIG, "v").levels] == paths[2:]


def test_a_name_alone_is_a_route_and_a_target() -> None:
    config = load(
        """\
        version: 1
        vendors: {v: {}}
        models: {v/a: {}, v/b: {}}
        routes:
          one: v/a
          two: {policy: weighted, targets: [v/a, {target: v/b, weight: 3}]}
        """
    ).config
    assert [target.target for target in config.routes["one"].targets] == ["v/a"]
    assert [(target.target, target.weight) for target in config.routes["two"].targets] == [("v/a", 1), ("v/b", 3)]


def test_what_is_not_written_has_the_documented_defaults() -> None:
    server = GatewayConfig(version=1).server
    assert (server.host, server.port, server.admin.port, server.admin.token) == ("127.0.0.1", 8080, 9091, None)
    assert (server.max_body, server.drain_timeout, server.watch, server.log) == (33_554_432, 600.0, True, "json")


def test_an_empty_admin_token_is_none() -> None:
    text = 'version: 1\nserver: {admin: {token: "${T:-}"}}\n'
    assert load(text).config.server.admin.token is None
    assert load(text, {"T": "canary"}).config.server.admin.token == SecretStr("canary")


def test_a_table_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        CONFIG.server.__setattr__("port", 1)


def test_an_error_of_the_models_hides_the_input() -> None:
    with pytest.raises(ValidationError) as caught:
        GatewayConfig.model_validate({"version": 1, "vendors": {"v": {"api_key": ["canary"], "base_url": "canary"}}})
    assert "canary" not in str(caught.value)
