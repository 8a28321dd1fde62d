"""One deployment's settings and its vendor's row, joined, or every reason why they cannot be, at its place."""

import typing
from dataclasses import dataclass
from functools import partial
from types import NoneType, UnionType

from config.sections.media_section import MediaSection
from config.sections.section import Section, built_in_section, setting, settings_of
from config.sections.value_types import Timeout
from config.table import table_schema
from config.table.inheritance import IMPLICIT_DEPLOYMENT, Inheritance, Settings, effective_settings
from config.table.table_json_schema import json_schema
from providers.pricing import Price
from providers.profiles.load_profiles import load_profiles
from providers.target import CircuitBreaker, Media, Retries, RetryBudget, Target, Timeouts
from providers.vendor_credential import AwsSource, EntraSource, GoogleSource
from proxy.routing.build_target import make_target, with_settings
from tests.docs.config_page import reference
from tests.proxy.kit.tables import loaded
from tests.support.looped import looped


def made(text: str, row: str = "v/m", deployment: str = IMPLICIT_DEPLOYMENT) -> Target | list[str]:
    table = loaded(text)
    result = make_target(
        row, deployment, effective_settings(table.config, row.partition("/")[0], row, deployment), table
    )
    return result if isinstance(result, Target) else [str(problem) for problem in result]


def target(text: str, row: str = "v/m", deployment: str = IMPLICIT_DEPLOYMENT) -> Target:
    result = made(text, row, deployment)
    assert isinstance(result, Target), result
    return result


def test_a_deployment_takes_its_vendor_s_row_and_its_own_name() -> None:
    found = target("vendors: {openai: {api_key: k}}\nmodels: {openai/gpt: {}}", "openai/gpt")
    assert (found.vendor, found.model, found.deployment) == ("openai", "gpt", "default")
    assert (found.upstream_model, found.model_key) == ("gpt", "openai/gpt")
    assert (found.name, found.label) == ("openai/gpt/default", "openai/gpt/default")
    assert found.profile is load_profiles()["openai"]
    assert found.base_url == "https://api.openai.com/v1"
    assert found.credential.headers() == {"Authorization": "Bearer k"}
    assert found.timeouts == Timeouts(5.0, 60.0, 120.0, 600.0, 600.0, 3600.0, keep_alive=20.0)
    assert found.stream_upstream == "off"
    assert (found.weight, found.allow_private, found.completions) == (1, False, None)
    assert (found.on_unsupported, found.context_length_exceeded_behavior, found.price) == ("error", None, None)


EVERYTHING = """
vendors:
  v: {profile: openai, api_key: "${KEY}", headers: {X-Team: secret-team}, timeouts: {connect: 1s, idle: 7s}}
models:
  v/m:
    deployments:
      eu:
        base_url: "http://10.1.2.3:8000/v1/"
        allow_private: true
        upstream_model: m-prod
        api_version: 2026-01-01
        weight: 3
        context_window: 1000
        max_output_tokens: 100
        price: {input: 0.15, output: 0.6, cached_input: 0.075}
        completions: true
        timeouts: {first_event: 2s, total: 3s, answer: 4s, keep_alive: off, keep_alive_json: true}
        stream_upstream: auto
        concurrent: 12
        input_type: search_document
        on_unsupported: drop
        context_length_exceeded_behavior: truncate
        retries: {attempts: 2, safety: strict, same_deployment: 1, budget: {share: 0.3, per_second: 2, least: 7}}
        circuit_breaker: {failures: 4, cooldown: 3s, longest_cooldown: 1m}
"""


def test_every_setting_reaches_the_target() -> None:
    found = target(EVERYTHING, deployment="eu")
    assert found.base_url == "http://10.1.2.3:8000/v1"
    assert found.credential.headers() == {"X-Team": "secret-team", "Authorization": "Bearer sk-of-the-operator"}
    written = frozenset({"connect", "first_event", "idle", "total", "answer", "keep_alive", "keep_alive_json"})
    assert found.timeouts == Timeouts(1.0, 2.0, 7.0, 3.0, 600.0, 3600.0, 4.0, written, None, keep_alive_json=True)
    assert found.stream_upstream == "auto"
    assert (found.upstream_model, found.api_version, found.weight) == ("m-prod", "2026-01-01", 3)
    assert (found.context_window, found.max_output_tokens, found.completions) == (1000, 100, True)
    assert found.allow_private
    assert found.concurrent == 12
    assert found.input_type == "search_document"
    assert (found.on_unsupported, found.context_length_exceeded_behavior) == ("drop", "truncate")
    assert found.price == Price(0.15, 0.6, 0.075)
    assert found.retries == Retries(2, "strict", 1, RetryBudget(0.3, 2, 7))
    assert found.circuit_breaker == CircuitBreaker(4, 3.0, 60.0)


def test_a_target_shows_no_secret() -> None:
    shown = repr(target(EVERYTHING, deployment="eu"))
    assert "sk-of" not in shown
    assert "secret-team" not in shown


OWN = 'profile: openai_compatible, base_url: "https://bedrock-runtime.eu-central-1.amazonaws.com/openai/v1"'


def test_credentials_that_expire_are_said_to_come_from_somewhere_and_nothing_is_fetched() -> None:
    found = target(f"vendors: {{v: {{{OWN}, credentials: {{aws: {{service: bedrock}}}}}}}}\nmodels: {{v/m: {{}}}}")
    assert found.credential.source == AwsSource("bedrock", "eu-central-1")
    assert found.credential.headers() == {}


def test_static_headers_go_beside_credentials_and_a_file_lies_beside_its_table() -> None:
    written = f"{OWN}, headers: {{X-Team: t}}, credentials: {{google: {{file: sa.json}}}}"
    found = target(f"vendors: {{v: {{{written}}}}}\nmodels: {{v/m: {{}}}}").credential
    assert found.headers() == {"X-Team": "t"}
    assert isinstance(found.source, GoogleSource)
    assert found.source.file == "sa.json"


def test_a_deployment_s_own_key_silences_its_vendor_s_credentials() -> None:
    own = f"vendors: {{v: {{{OWN}, credentials: google}}}}\nmodels: {{v/m: {{api_key: k}}}}"
    assert target(own).credential.source is None
    assert target(own).credential.headers() == {"Authorization": "Bearer k"}


def test_what_credentials_need_and_nobody_says_is_told_where_they_are_written() -> None:
    assert made(f"vendors:\n  v: {{{OWN}}}\nmodels:\n  v/m: {{credentials: aws}}") == [
        "table.yaml:5:22 models.v/m.credentials: the profile 'openai_compatible' has no default for this setting: "
        "set credentials.aws.service"
    ]


def test_azure_takes_tokens_in_a_key_s_place() -> None:
    found = target(
        "vendors: {azure: {credentials: entra, url_params: {resource: r}}}\nmodels: {azure/m: {}}", "azure/m"
    )
    assert found.credential.source == EntraSource("https://cognitiveservices.azure.com/.default")


AZURE = "vendors: {v: {profile: azure, api_key: k%s}}\nmodels: {v/m: {}}"


def test_the_placeholders_of_an_address_are_filled_in_unless_it_is_one_s_own() -> None:
    assert target(AZURE % ", url_params: {resource: mine}").base_url == "https://mine.openai.azure.com"
    assert target(AZURE % ', base_url: "https://swe.example.com"').base_url == "https://swe.example.com"


def test_a_key_that_its_profile_does_not_need_may_be_left_out() -> None:
    table = (
        'vendors: {v: {profile: vllm, base_url: "http://127.0.0.1:8000/v1", allow_private: true}}\nmodels: {v/m: {}}'
    )
    assert target(table).credential.headers() == {}


@looped(
    ("text", "expected"),
    [
        (
            "vendors: {v: {profile: opnai, api_key: k}}\nmodels: {v/m: {}}",
            [
                "table.yaml:2:24 vendors.v.profile: no profile is called 'opnai'; did you mean openai or pais? For a "
                "server that speaks OpenAI's API write profile: openai_compatible"
            ],
        ),
        (
            "vendors:\n  v: {}\nmodels: {v/m: {}}",
            [
                "table.yaml:3:3 vendors.v.profile: no profile is called 'v'; for a server that speaks OpenAI's API "
                "write profile: openai_compatible"
            ],
        ),
        (
            "vendors:\n  openai: {}\nmodels: {openai/m: {}}",
            ["table.yaml:3:11 vendors.openai: the profile 'openai' needs an api_key"],
        ),
        (
            AZURE % "",
            ["table.yaml:2:14 vendors.v: the address of profile 'azure' needs url_params.resource (or set base_url)"],
        ),
        (
            "vendors:\n  v: {profile: openai_compatible}\nmodels: {v/m: {}}",
            ["table.yaml:3:6 vendors.v: the profile 'openai_compatible' has no address of its own: set base_url"],
        ),
        (
            "vendors:\n  vllm: {}\nmodels: {vllm/m: {}}",
            ["table.yaml:3:9 vendors.vllm: is a loopback address; to allow it, add `allow_private: true` beside it"],
        ),
        (
            "vendors:\n  pais: {api_key: k, url_params: {fqdn: 10.0.0.1}}\nmodels: {pais/m: {}}",
            ["table.yaml:3:9 vendors.pais: is a private address; to allow it, add `allow_private: true` beside it"],
        ),
        (
            "vendors:\n  v: {profile: azure}\nmodels: {v/m: {}}",
            [
                "table.yaml:3:6 vendors.v: the address of profile 'azure' needs url_params.resource (or set base_url)",
                "table.yaml:3:6 vendors.v: the profile 'azure' needs an api_key",
            ],
        ),
    ],
)
def test_what_is_missing_is_told_where_it_would_be_written(text: str, expected: list[str]) -> None:
    row = next(iter(loaded(text).config.models))
    assert made(text, row) == expected


@looped("name", sorted(load_profiles()))
def test_every_profile_can_be_used(name: str) -> None:
    profile = load_profiles()[name]
    url_params = ", ".join(f"{each}: x" for each in profile.placeholders)
    address = "" if profile.base_url else ", base_url: 'https://x.example.com'"
    settings = f"profile: {name}, api_key: k, allow_private: true, url_params: {{{url_params}}}{address}"
    found = target(f"vendors: {{v: {{{settings}}}}}\nmodels: {{v/m: {{}}}}")
    assert "{" not in found.base_url
    assert found.profile is profile


class DeploymentSettings(table_schema.DeploymentSettings):
    """The settings of deployments, and one more setting."""

    siesta: Timeout = setting("How long it rests.", "7s")


class Table(table_schema.GatewayConfig):
    """A configuration with that setting."""

    defaults: DeploymentSettings = DeploymentSettings()


@dataclass
class Resting:
    siesta: float
    concurrent: int | None = None


def test_a_declared_setting_is_in_the_target_the_schema_and_the_reference() -> None:
    levels = Inheritance([(("vendors", "v"), DeploymentSettings(siesta=3.0)), (("defaults",), DeploymentSettings())])
    assert with_settings(
        partial(Resting, concurrent=1), levels.resolve(built_in_section(DeploymentSettings))
    ) == Resting(3.0, 1)
    assert levels.origins == {"siesta": ("vendors", "v", "siesta")}
    assert with_settings(partial(Resting), Inheritance([]).resolve(built_in_section(DeploymentSettings))) == Resting(
        7.0
    )
    schema = json_schema(Table)
    described = schema["$defs"]["DeploymentSettings"]["properties"]["siesta"]
    assert (described["title"], described["description"]) == ("duration", "How long it rests. Built in: 7s.")
    assert "| `siesta` | duration | 7s | How long it rests. |" in reference(schema)


WORKED_OUT = frozenset(
    {
        *("base_url", "keep_alive", "price", "schemes"),  # of another type, or with more than the setting
        *("api_key", "credentials", "headers", "url_params", "ca_file", "media", "allow_fields", "allow_headers"),
        *("cache", "affinity", "hedge"),  # of names, not of deployments
    }
)
SECTIONS = {"timeouts": Timeouts, "retries": Retries, "budget": RetryBudget, "circuit_breaker": CircuitBreaker}


def lacking(section: type[Section], part: type) -> list[str]:
    """Return the settings of a section for which a part of a target has no field of the same name and type."""
    had = typing.get_type_hints(part, localns={"Dialect": object})
    wanted = typing.get_type_hints(section)
    names = [name for name in settings_of(section) if name not in WORKED_OUT]
    below = {name: section.model_fields[name].default for name in names if name in SECTIONS}
    found = [each for name, value in below.items() for each in lacking(type(value), SECTIONS[name])]
    return found + [name for name in names if name not in below and kinds(wanted[name]) != kinds(had.get(name))]


def kinds(hint: object) -> set[object]:
    """Return the types of a type hint except `None`."""
    union = typing.get_origin(hint) in (typing.Union, UnionType)
    return {kind for kind in (typing.get_args(hint) if union else (hint,)) if kind is not NoneType}


def test_the_target_has_a_field_for_each_setting_that_is_not_worked_out() -> None:
    assert not lacking(Settings, Target)
    assert not lacking(MediaSection, Media)
