"""The settings a deployment inherits."""

import pytest
from pydantic import SecretStr

from config.sections.failover_section import CircuitBreakerSection, RetriesSection, RetryBudgetSection
from config.sections.media_section import MediaSection
from config.sections.price_section import PriceSection
from config.sections.section import built_in_section
from config.table.inheritance import (
    deployment_inheritance,
    deployment_named,
    effective_settings,
    vendor_inheritance,
)
from config.table.table_schema import DeploymentSection, ModelSection, TimeoutsSection
from tests.config.tables import load
from tests.support.looped import looped

TABLE = """\
    version: 1
    defaults:
      timeouts: {connect: 1s, idle: 10s, answer: 30s}
      stream_upstream: auto
      headers: {X-A: defaults, X-B: defaults}
      context_window: 1000
      context_length_exceeded_behavior: error
      price: {input: 3, output: 9, cached_input: 1}
    vendors:
      v:
        profile: vllm
        api_key: "${VENDOR_KEY}"
        base_url: https://vendor.example/v1
        url_params: {resource: v, region: 7}
        timeouts: {connect: 2s, total: 20s}
        headers: {x-b: vendor}
        on_unsupported: drop
        context_length_exceeded_behavior: truncate
      w: {}
    models:
      v/m:
        api_version: 2024-10-21
        completions: true
        timeouts: {first_event: 1m}
        url_params: {resource: m}
        context_length_exceeded_behavior: error
        deployments:
          one:
            base_url: https://one.example
            timeouts: {connect: 3s}
            stream_upstream: off
            weight: 5
            upstream_model: big
            price: {input: 0.5, output: 0}
            headers: {X-B: one}
            on_unsupported: error
            context_length_exceeded_behavior: truncate
          two: {api_key: "", max_output_tokens: 9, context_window: 2000, completions: no}
      v/x: {upstream_model: any}
      w/m: {}
    """
CONFIG = load(TABLE, {"VENDOR_KEY": "canary"}).config
SILENT = load("version: 1\nvendors: {v: {}}\nmodels: {v/m: {}}").config


def test_what_is_tried_again_is_inherited_key_by_key() -> None:
    table = load(
        "version: 1\ndefaults: {retries: {attempts: 5}}\nvendors: {v: {retries: {safety: strict}}}\n"
        "models: {v/m: {deployments: {a: {retries: {safety: off}}, b: {}}}}\n"
    )
    one, two = (effective_settings(table.config, "v", "v/m", name).retries for name in ("a", "b"))
    assert (one, two) == tuple(
        RetriesSection(attempts=5, safety=safety, same_deployment=0) for safety in ("off", "strict")
    )


def test_budgets_and_circuit_breakers_are_inherited_key_by_key_and_nothing_counts_as_written() -> None:
    table = load(
        "version: 1\ndefaults: {retries: {budget: {share: 0.5, least: 3}}, circuit_breaker: {failures: 9}}\n"
        "vendors: {v: {retries: {budget: {share: 0}}, circuit_breaker: {cooldown: 2s}}}\n"
        "models: {v/m: {circuit_breaker: {failures: 2, longest_cooldown: 1m}}}\n"
    )
    own = effective_settings(table.config, "v", "v/m", "default")
    assert own.retries.budget == RetryBudgetSection(share=0, per_second=None, least=3)
    assert own.circuit_breaker == CircuitBreakerSection(failures=2, cooldown=2.0, longest_cooldown=60.0)
    assert own.origins["retries.budget.share"] == ("vendors", "v", "retries", "budget", "share")
    assert own.origins["circuit_breaker.cooldown"] == ("vendors", "v", "circuit_breaker", "cooldown")
    assert effective_settings(SILENT, "v", "v/m", "default").circuit_breaker == CircuitBreakerSection()


def test_requests_at_once_are_bounded_by_the_deepest_level() -> None:
    table = load(
        "version: 1\ndefaults: {}\nvendors: {v: {concurrent: 64}, w: {}}\n"
        "models: {v/m: {deployments: {a: {concurrent: 8}, b: {}}}, v/n: {concurrent: 16}, w/m: {}}\n"
    )
    asked = (("v", "v/m", "a"), ("v", "v/m", "b"), ("v", "v/n", "default"), ("w", "w/m", "default"))
    assert [effective_settings(table.config, *names).concurrent for names in asked] == [8, 64, 16, None]


def test_what_inputs_are_for_is_said_by_the_deepest_level() -> None:
    table = load(
        "version: 1\ndefaults: {}\nvendors: {v: {input_type: search_document}, w: {}}\n"
        "models: {v/m: {}, v/n: {input_type: search_query}, w/m: {}}\n"
    )
    asked = (("v", "v/m", "default"), ("v", "v/n", "default"), ("w", "w/m", "default"))
    assert [effective_settings(table.config, *names).input_type for names in asked] == [
        "search_document",
        "search_query",
        None,
    ]


def test_the_keep_alives_of_streams_are_off_where_the_deepest_level_says_so() -> None:
    table = load(
        "version: 1\ndefaults: {timeouts: {keep_alive: 5s}}\nvendors: {v: {timeouts: {keep_alive: off}}, w: {}}\n"
        "models: {v/m: {}, v/n: {timeouts: {keep_alive: 500ms, keep_alive_json: true}}, w/m: {}}\n"
    )
    asked = (("v", "v/m", "default"), ("v", "v/n", "default"), ("w", "w/m", "default"))
    found = [effective_settings(table.config, *names).timeouts for names in asked]
    assert [(each.keep_alive, each.keep_alive_json) for each in found] == [("off", False), (0.5, True), (5.0, False)]
    assert built_in_section(TimeoutsSection).keep_alive == 20.0


def test_the_deepest_level_that_says_something_counts_for_each_key() -> None:
    one = effective_settings(CONFIG, "v", "v/m", "one")
    written = {"connect": 3.0, "first_event": 60.0, "idle": 10.0, "total": 20.0, "answer": 30.0}
    assert one.timeouts == built_in_section(TimeoutsSection).model_copy(update=written)
    assert one.timeouts.model_fields_set == set(written)
    assert (one.stream_upstream, effective_settings(CONFIG, "v", "v/m", "two").stream_upstream) == ("off", "auto")
    assert (one.base_url, one.context_window, one.max_output_tokens) == ("https://one.example", 1000, None)
    assert (one.profile, one.api_version, one.upstream_model, one.weight) == ("vllm", "2024-10-21", "big", 5)
    assert (one.completions, one.allow_private) == (True, False)
    assert one.url_params == {"resource": "m", "region": "7"}


@looped(
    ("vendor", "model", "deployment", "on_unsupported", "behavior"),
    [
        ("v", "v/m", "one", "error", "truncate"),
        ("v", "v/m", "two", "drop", "error"),
        ("v", "v/x", "default", "drop", "truncate"),
        ("w", "w/m", "default", "error", "error"),
    ],
)
def test_each_level_may_say_what_becomes_of_what_does_not_fit(
    vendor: str, model: str, deployment: str, on_unsupported: str, behavior: str
) -> None:
    found = effective_settings(CONFIG, vendor, model, deployment)
    assert (found.on_unsupported, found.context_length_exceeded_behavior) == (on_unsupported, behavior)


def test_by_default_the_request_is_refused_and_the_window_left_to_the_surface() -> None:
    found = effective_settings(SILENT, "v", "v/m", "default")
    assert (found.on_unsupported, found.context_length_exceeded_behavior) == ("error", None)
    assert not found.origins


def test_a_price_is_inherited_as_a_whole() -> None:
    one, two = (effective_settings(CONFIG, "v", "v/m", name) for name in ("one", "two"))
    assert one.price == PriceSection(input=0.5, output=0, cached_input=None)
    assert two.price == PriceSection(input=3, output=9, cached_input=1)
    assert one.origins["price"] == ("models", "v/m", "deployments", "one", "price")
    assert effective_settings(SILENT, "v", "v/m", "default").price is None


def test_headers_merge_by_name_whatever_their_case() -> None:
    headers = effective_settings(CONFIG, "v", "v/m", "one").headers
    assert set(headers) == {"X-A", "X-B"}
    assert headers["X-B"] == SecretStr("one")
    assert set(effective_settings(CONFIG, "v", "v/m", "two").headers) == {"X-A", "x-b"}


def test_an_empty_key_stops_the_inheritance() -> None:
    assert effective_settings(CONFIG, "v", "v/m", "one").api_key == SecretStr("canary")
    assert effective_settings(CONFIG, "v", "v/m", "two").api_key is None


def test_a_false_beats_the_true_above_it() -> None:
    assert effective_settings(CONFIG, "v", "v/m", "two").completions is False


def test_a_model_without_deployments_has_one_called_default() -> None:
    renamed = effective_settings(CONFIG, "v", "v/x", "default")
    assert (renamed.upstream_model, renamed.base_url, renamed.weight) == ("any", "https://vendor.example/v1", 1)
    plain = effective_settings(CONFIG, "w", "w/m", "default")
    assert (plain.profile, plain.api_key, plain.timeouts.total) == ("w", None, 600.0)
    silent = effective_settings(SILENT, "v", "v/m", "default")
    assert (silent.timeouts.answer, silent.stream_upstream) == (None, "off")


def test_every_value_knows_where_it_was_written() -> None:
    origins = effective_settings(CONFIG, "v", "v/m", "one").origins
    assert origins["base_url"] == ("models", "v/m", "deployments", "one", "base_url")
    assert origins["timeouts.idle"] == ("defaults", "timeouts", "idle")
    assert origins["api_key"] == ("vendors", "v", "api_key")
    assert origins["headers.X-B"] == ("models", "v/m", "deployments", "one", "headers", "X-B")
    assert origins["on_unsupported"] == ("models", "v/m", "deployments", "one", "on_unsupported")
    assert "max_output_tokens" not in origins


def test_what_clients_may_send_is_inherited_list_by_list_and_media_key_by_key() -> None:
    text = """
version: 1
defaults: {allow_headers: [x-a], media: {schemes: [https, gs], allow_private: true}}
vendors: {v: {allow_fields: [lora_path]}}
models:
  v/m: {allow_fields: [chat_template], media: {schemes: [data]}, deployments: {one: {allow_fields: []}, two: {}}}
"""
    config = load(text).config
    one, two = (effective_settings(config, "v", "v/m", name) for name in ("one", "two"))
    assert (one.allow_fields, two.allow_fields, two.allow_headers) == ([], ["chat_template"], ["x-a"])
    assert two.media == MediaSection(schemes=["data"], allow_private=True)
    assert two.origins["media.schemes"] == ("models", "v/m", "media", "schemes")
    assert effective_settings(CONFIG, "v", "v/x", "default").media == MediaSection()


def test_settings_show_no_secret() -> None:
    assert "canary" not in repr(effective_settings(CONFIG, "v", "v/m", "one"))


@looped("names", [("x", "v/m", "one"), ("v", "v/x", "one"), ("v", "v/m", "three"), ("v", "v/m", "default")])
def test_a_name_that_is_not_in_the_table_has_no_settings(names: tuple[str, str, str]) -> None:
    with pytest.raises(KeyError):
        effective_settings(CONFIG, *names)


def test_the_implicit_deployment_is_there_only_without_others() -> None:
    assert deployment_named(ModelSection(), "default") == DeploymentSection()
    with pytest.raises(KeyError):
        deployment_named(ModelSection(deployments={"a": DeploymentSection()}), "default")


def test_the_levels_are_deepest_first() -> None:
    paths = [path for path, _ in deployment_inheritance(CONFIG, "v", "v/m", "one").levels]
    assert paths == [("models", "v/m", "deployments", "one"), ("models", "v/m"), ("vendors", "v"), ("defaults",)]
    assert [path for path, _ in vendor_inheritance(CONFIG, "v").levels] == paths[2:]
