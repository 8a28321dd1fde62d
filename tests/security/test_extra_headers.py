"""The headers that a client can add to a call: only headers of a list, which only the configuration can extend."""

import orjson
import pytest

from config.load_config import load_text
from config.problem import ConfigError
from providers.json_types import JsonObject
from proxy.routing.snapshot import build_snapshot
from tests.proxy.kit.gateway_rig import CLIENT_KEY, ask, rig
from tests.proxy.kit.tables import digest_of
from tests.support.http_scripts import json_answer
from tests.support.looped import looped
from tests.support.openai_wire import completion

TABLE = f"""
vendors:
  v: {{profile: openai_compatible, base_url: "http://127.0.0.1:PORT/v1", allow_private: true, api_key: sk-operator}}
models:
  v/m: {{}}
  v/own: {{allow_headers: [X-My-Header, "x-team-*", X-Tenant-ID]}}
  v/wide: {{allow_headers: ["x-*"]}}
routes: {{either: {{targets: [v/m, v/own]}}}}
teams: {{t: {{keys: ["{digest_of(CLIENT_KEY)}"], models: ["*"]}}}}
"""

TRUSTED_BY_OTHERS = (
    *("x-gateway-destination-endpoint", "x-gateway-model-name", "x-smg-target-worker", "x-envoy-original-dst-host"),
    *("x-forwarded-for", "x-forwarded-user", "x-forwarded-email", "x-forwarded-preferred-username", "x-real-ip"),
    *("remote-user", "x-remote-user", "x-user", "x-webauth-user", "x-email", "x-ms-client-principal"),
    *("x-ms-client-principal-id", "x-ms-client-principal-name", "x-consumer-id", "x-consumer-username"),
    *("x-credential-identifier", "x-authenticated-userid", "x-anonymous-consumer", "fly-client-ip", "fly-region"),
    *("cf-connecting-ip", "fastly-client-ip", "x-appengine-user-email", "x-amzn-oidc-identity", "x-goog-iap-jwt"),
    *("x-goog-user-project", "x-tenant-id", "x-org-id", "openai-organization", "x-scope-orgid", "x-hf-bill-to"),
    *("user-agent", "referer", "origin", "dnt", "x-requested-with", "x-csrf", "x-anything", "priority"),
    *("x-portkey-provider", "x-litellm-timeout", "helicone-target-url", "cf-aig-skip-cache", "x-vllm-priority"),
    *("nvcf-function-asset-ids", "azureml-model-deployment", "x-amzn-sagemaker-target-model", "x-b3", "baggage-x"),
)

DOCUMENTED = (
    *("traceparent", "tracestate", "baggage", "b3", "X-B3-TraceId", "x-client-request-id", "x-correlation-id"),
    *("anthropic-beta", "OpenAI-Beta", "HTTP-Referer", "X-Title", "x-session-affinity", "x-grok-conv-id"),
    *("X-SMG-Routing-Key", "X-data-parallel-rank", "X-Session-ID", "Accept-Language", "X-DashScope-DataInspection"),
    *("X-Vertex-AI-LLM-Request-Type", "X-Vertex-AI-LLM-Shared-Request-Type", "X-Client-Name", "Groq-Model-Version"),
)


@looped("name", TRUSTED_BY_OTHERS)
async def test_threat_15_no_header_that_proxies_and_meshes_trust_goes_out(name: str) -> None:
    async with rig(TABLE) as served:
        served.vendor.default = json_answer(200, completion("hello", "m"))
        for spelling in (name, name.upper(), name.title()):
            refused = await served.post("/v1/completions", ask(inference_extra_headers={"baggage": "a", spelling: "x"}))
            assert (refused.status, orjson.loads(refused.body)["error"]["param"]) == (
                400,
                f"inference_extra_headers.{spelling}",
            )
        assert served.vendor.requests == []


async def test_threat_15_the_refusal_says_which_setting_allows_the_header() -> None:
    async with rig(TABLE) as served:
        refused = await served.post("/v1/completions", ask(inference_extra_headers={"X-My-Header": "x"}))
    assert refused.code == "unsupported_parameter"
    assert "v/m/default" in refused.message
    assert "`allow_headers: [x-my-header]`" in refused.message


@looped("name", DOCUMENTED)
async def test_threat_15_tracing_and_the_vendors_documented_switches_pass(name: str) -> None:
    async with rig(TABLE) as served:
        served.vendor.default = json_answer(200, completion("hello", "m"))
        assert (await served.post("/v1/completions", ask(inference_extra_headers={name: "v"}))).status == 200
        (received,) = served.vendor.requests
    assert received.header(name) == "v"


async def test_threat_15_the_table_adds_names_and_beginnings_of_names_for_one_deployment() -> None:
    async with rig(TABLE) as served:
        served.vendor.default = json_answer(200, completion("hello", "m"))
        extra: JsonObject = {"x-my-header": "1", "X-TEAM-color": "2", "x-tenant-id": "3"}
        for model in ("v/own", "either"):
            assert (await served.post("/v1/completions", ask(model, inference_extra_headers=extra))).status == 200
        for received in served.vendor.requests:
            assert {name: received.header(name) for name in extra} == extra
        for name in ("x-my-header-2", "x-teamed", "x-team"):
            refused = await served.post("/v1/completions", ask("v/own", inference_extra_headers={name: "1"}))
            assert (refused.status, refused.code) == (400, "unsupported_parameter")


@looped("name", ["x-forwarded-host", "x-api-key", "x-dragoman-team", "x-amz-date", "x-host", "x-http-method-override"])
async def test_threat_15_no_wide_pattern_reaches_host_credentials_or_what_the_gateway_says(name: str) -> None:
    async with rig(TABLE) as served:
        refused = await served.post("/v1/completions", ask("v/wide", inference_extra_headers={name: "x"}))
        assert refused.status == 400
        assert served.vendor.requests == []


@looped(
    "name",
    ["Authorization", "host", "Content-Length", "content-*", "transfer-encoding", "connection", "proxy-*", "x-api-key",
     "cookie", "x-forwarded-for", "x-dragoman-*", "x-request-id", "X-Auth-*"],
)  # fmt: skip
def test_threat_15_a_table_that_allows_what_must_never_pass_is_refused_where_it_says_so(name: str) -> None:
    table = "version: 1\nvendors: {v: {profile: openai, api_key: k}}\nmodels:\n"
    table += f'  v/m: {{allow_headers: [x-a, "{name}"]}}\n'
    with pytest.raises(ConfigError) as caught:
        build_snapshot(load_text(table, "table.yaml", {}))
    (problem,) = caught.value.problems
    assert str(problem).startswith("table.yaml:4:30 models.v/m.allow_headers.1: no client may send this")
