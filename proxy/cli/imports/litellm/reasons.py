"""The reasons why keys of LiteLLM are not converted, by section. A reason names this gateway's counterpart, or states
that there is none.

A pattern matches the whole key. The first pattern that matches decides, so that keys of later versions with the same
prefix have a reason too. A key without a match is reported as unknown to this import.

Sources: the pydantic types of litellm 1.108.7 (`proxy/_types.py`, `types/router.py`, `models/`) and LiteLLM's page
"All settings", November 2026.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import Final

from proxy.cli.imports.remarks import Reason

KNOWN_VERSION: Final = "1.108.7"
"""The version of LiteLLM whose keys are known."""

_UNKNOWN: Final = Reason(f"is not a key of LiteLLM {KNOWN_VERSION} that this import knows: not taken")

_Row = tuple[str, Reason]


def _note(text: str) -> Reason:
    return Reason(text, "note")


_NOT_HERE: Final = Reason("has no counterpart: there is nothing of the kind")
_LEDGER: Final = Reason("usage is kept in the ledger (server.ledger, with keep), by rules of its own")
_HEALTH: Final = Reason("the health of deployments is measured by real requests (circuit_breaker), not by test calls")
_ALERTS: Final = Reason("alerts are made of metrics: deploy/prometheus has rules")
_TRACES: Final = Reason(
    "callbacks are server.tracing (OpenTelemetry, which Langfuse, Arize and others take), the admin listener's "
    "/metrics for Prometheus, server.payload_log, and sinks (plugins)"
)
_GUARDS: Final = Reason("guardrails are guards: plugins that check requests and responses")
_NO_UI: Final = Reason("has no counterpart: there is no login, and all settings are in the config file")
_KEYS: Final = Reason("has no counterpart: `dragoman key new` makes keys; they are in the config file or in keys_from")
_MCP: Final = Reason("has no counterpart: there are no MCP servers, agents, skills, files or vector stores")
TAGS: Final = Reason(
    "tags choose no deployment, for which a team has routes of its own (teams.NAME.routes); for reports of usage it "
    "has teams.NAME.tags, by name and value: for you to write"
)
_PRICE: Final = Reason("has no counterpart: prices are by token, one for each of input, output and the cache")
_BUILT: Final = _note("is built in, without a setting")
_SURFACE: Final = Reason("has no counterpart: a model is called by its own API, whatever API the client speaks")
_DEFAULTS: Final = Reason("has no counterpart: a deployment has no values for what clients leave out")
_FAILURES: Final = Reason("has no counterpart: what is tried again is decided for each kind of failure (retries)")
_CLIENT: Final = Reason("has no counterpart: clients choose no addresses and send no credentials of vendors")
_SECRETS: Final = Reason(
    'secrets are references: "${VAR}" or "${file:/run/secrets/NAME}", which any secret store fills'
)
_AUTO: Final = Reason("has no counterpart: no model is chosen by a prompt's content")

_GENERAL: Final[Sequence[_Row]] = (
    (
        "database_url",
        Reason(
            "this database is not read: its keys, teams and models come by --keys, --teams and --models; what is used "
            "from now on is kept in server.ledger, in a file or in PostgreSQL"
        ),
    ),
    ("store_model_in_db", Reason("there is no database of settings: models that only it has come by --models")),
    (".*spend_logs.*|.*retention_period|disable_spend.*|spend_.*|proxy_batch_.*|.*_partitioning", _LEDGER),
    ("store_prompts_.*|disable_requester_ip_.*", Reason("prompts are written only by server.payload_log")),
    ("database_.*|disable_prisma_.*|allow_requests_on_db_.*", Reason("is about LiteLLM's database; see server.ledger")),
    ("supported_db_objects|proxy_config_reload_.*|scheduled_job_.*", Reason("there is no database of settings")),
    ("disable_(reset_budget|budget_reservation)|proxy_budget_.*", _note("budgets begin anew by the calendar")),
    ("(max_in_flight|max_queued)_.*|admission_.*", Reason("is server.limits: requests and streams of one process")),
    (
        "max_parallel_requests",
        Reason("is `concurrent` in limits of each vendor, model or deployment: for you to write"),
    ),
    ("max_response_size_mb", Reason("has no counterpart: a response of any size is passed on in chunks")),
    (
        "(max_batch|max_file|allowed_file|blocked_file|transcribe_)[a-z_]*",
        Reason("has no counterpart: no files are kept"),
    ),
    ("background_health_.*|health_check_.*|model_list_healthy_only", _HEALTH),
    ("alert.*", _ALERTS),
    ("otel", _TRACES),
    ("master_key|dangerously_permit_.*|disable_(master_key|adding_master_key)_.*", _note("see the team `master`")),
    ("key_management_.*|use_(google_kms|azure_key_vault)", _SECRETS),
    (
        "custom_auth.*|.*jwt.*|.*oauth2.*|allow_user_auth|custom_sso",
        Reason("clients prove themselves by keys of teams"),
    ),
    (
        "ui_.*|password_.*|.*failed_login.*|failed_login_.*|disable_(env|password|auto_add)_.*|allow_cli_.*|control_plane_.*"
        "|enable_public_model_hub|litellm_license",
        _NO_UI,
    ),
    (
        "custom_key_generate|default_team_disabled|apply_user_budget_.*|user_header_.*|service_account_.*|enforce_user_param"
        "|enforced_params",
        _KEYS,
    ),
    ("user_api_key_cache_.*", _note("keys are in memory: there is nothing to cache")),
    (
        "(allowed|public|admin_only)_routes|allowed_ips|.*trusted_proxy_.*|use_x_forwarded_for|litellm_key_header_name",
        Reason("has no counterpart: every key of a team may call every API; its `models` list the names"),
    ),
    ("forward_.*|allow_client_side_.*|user_url_.*|provider_url_.*|infer_model_from_keys", _CLIENT),
    (
        "pass_through_.*|use_client_credentials_.*|enable_openai_websocket_.*|responses_websocket_.*",
        Reason("has no counterpart: there are no paths of one's own"),
    ),
    ("plugins", _GUARDS),
    ("coordination_redis", Reason("is server.shared.redis: for you to write")),
    ("fail_closed_rate_limit_enforcement", Reason("is server.ledger.unread for budgets; limits go on without Redis")),
    (
        "(image_generation|embedding|moderation)_model",
        Reason("is server.surfaces.openai.task_models: for you to write"),
    ),
    ("cancel_on_disconnect|disable_retry_on_.*|include_call_id_.*|missing_session_id", _BUILT),
    (
        "disable_fallbacks_on_.*|enforce_fallback_.*",
        Reason("has no counterpart: what a granted route falls back to is the operator's word"),
    ),
    ("disable_responses_id_.*|allow_unmanaged_.*", _note("a team finds its own stored responses alone")),
    ("reject_clientside_metadata_tags", _note("clients' tags have no effect here")),
    ("mcp_.*|.*_mcp_.*|agent_.*|search_tool_.*|vector_store_.*|.*autorouter_.*|.*claude_code_.*", _MCP),
)

_ROUTER: Final[Sequence[_Row]] = (
    ("retry_policy|model_group_retry_policy|allowed_fails_policy|retry_after", _FAILURES),
    ("enable_pre_call_checks?", _note("a prompt that is certain not to fit is never sent, without a setting")),
    (
        "disable_cooldowns",
        Reason("a circuit breaker cannot be switched off; circuit_breaker.failures may be up to 1000"),
    ),
    (".*tag_.*", TAGS),
    ("default_litellm_params", _DEFAULTS),
    ("alerting_config", _ALERTS),
    ("cache_.*|caching_groups", Reason("is `cache` in defaults, at a vendor, a model or a route: for you to write")),
    ("redis_db", Reason("is the path of server.shared.redis (redis://HOST/1): for you to write")),
    ("client_ttl|debug_level|set_verbose|ignore_invalid_deployments|polling_interval", _BUILT),
    ("default_max_parallel_requests", Reason("is `concurrent` in limits of each deployment: for you to write")),
    (
        "provider_budget_config",
        Reason("is `budget` of each vendor (vendors.NAME.budget): for you to write"),
    ),
    (".*health_check.*", _HEALTH),
    (".*affinity.*", _note("a conversation stays with the deployment that has its cache, without a setting")),
    ("enable_weighted_failover", _note("another deployment of the name is tried, without a setting")),
    ("optional_pre_call_checks", _note("limits of deployments hold, and conversations stay where their cache is")),
    (
        "routing_strategy_args|routing_groups|weights|default_priority",
        Reason("has no counterpart: policies have no settings but weights, and requests no priorities"),
    ),
    ("fallback_.*", Reason("has no counterpart: a request that a deployment cannot honour goes to the next target")),
    ("guardrail_list|plugins", _GUARDS),
    ("auto_router_.*", _AUTO),
    ("model_list", Reason("belongs at the top of the file: not taken")),
    ("assistants_config|search_tools|router_general_settings", _NOT_HERE),
)

_SETTINGS: Final[Sequence[_Row]] = (
    (
        "callbacks|(success|failure|audit_log|service)_callbacks?|.*langfuse.*|.*_callback_.*|otel|datadog_.*|s3_callback_.*",
        _TRACES,
    ),
    ("(turn_off|redact)_.*|log_raw_.*|message_logging", _note("no prompt is written but by server.payload_log")),
    ("guardrails.*|.*presidio.*|.*banned_keywords.*|blocked_user_list|hide_secrets", _GUARDS),
    ("set_verbose|telemetry|suppress_debug_.*", _note("nothing is sent to the makers, and the log has one level")),
    (
        "(disable_|enable_)end_user_cost_.*|.*prometheus.*",
        Reason("metrics are the admin listener's, with labels of the configuration"),
    ),
    ("key_generation_settings|.*key_alias_.*|upperbound_.*|default_(key|internal_user|team)_.*|max_internal_.*", _KEYS),
    ("soft_budget", Reason("is a budget of all clients that warns (`budget` with then: warn): for you to write")),
    (
        "budget_duration|.*budget.*",
        Reason("budgets are those of all clients, teams and keys (`budget`): for you to write"),
    ),
    (
        "force_ipv4|ssl_.*|aiohttp_.*|.*http_.*",
        Reason("connections are made by rules of their own; ca_file names authorities"),
    ),
    ("mcp_.*|vector_store_.*|.*assistants.*", _MCP),
    ("modify_params", Reason("what a vendor does not take is refused by name, or left out by on_unsupported: drop")),
    ("additional_drop_params", Reason("is on_unsupported: drop, which leaves out what the vendor does not take")),
    ("use_chat_completions_url_.*|.*inline_image.*|disable_hf_.*|disable_copilot_.*|LITELLM_.*", _SURFACE),
    ("enable_json_schema_validation", _note("a response that a schema constrains is checked, without a setting")),
    ("enable_preview_features|json_logs|return_response_headers", _BUILT),
    ("cost_.*|model_cost.*|custom_provider_map", Reason("is `price` of a model, and profiles: for you to write")),
    ("public_model_.*|.*model_groups?.*", _NO_UI),
    ("tag_.*", TAGS),
    ("max_parallel_requests", Reason("is `concurrent` in limits of teams, keys or deployments: for you to write")),
    (
        "enable_loadbalancing_on_batch_endpoints|.*batch.*|.*file.*",
        Reason("has no counterpart: there are no batches and files"),
    ),
)

_PARAMS: Final[Sequence[_Row]] = (
    ("max_budget|budget_duration", Reason("is `budget` of the vendor, model or deployment: for you to write")),
    (
        "itpm|otpm|default_api_key_(rpm|tpm)_limit",
        Reason("limits of a deployment count all requests and tokens; a team has limits of models (limits.models)"),
    ),
    ("tags|tag_regex", TAGS),
    ("region_name|allowed_model_region", Reason("requests are not routed by region: give regions routes of their own")),
    ("mock_.*", Reason("there are no made-up responses: the vendor `mock` is the nearest")),
    ("azure_ad_token", _note("a token that expires is not copied: credentials are fetched (credentials: entra)")),
    (
        "base_model",
        _note("is `base_model`, for list prices and windows: write it in model_info"),
    ),
    (".*_(cost|costs|uplift_multiplier).*|cost_per_second|tiered_pricing|.*pricing.*", _PRICE),
    (
        "max_tokens|max_completion_tokens",
        Reason(
            "is no value for what clients leave out: max_output_tokens of the model or deployment is the most that a "
            "response may have, and what a request has without a limit if the vendor requires one; for you to write"
        ),
    ),
    (
        "temperature|top_p|top_k|seed|stop|n|presence_penalty|frequency_penalty|dimensions"
        "|extra_body|thinking|reasoning_effort|output_vector_size|user|response_format|logit_bias",
        _DEFAULTS,
    ),
    (".*auto_router.*|.*(complexity|quality|adaptive)_router.*", _AUTO),
    (
        "anthropic_.*|openai_(identity|service).*|token_exchange_.*|azure_(password|scope|username)|use_xai_oauth",
        Reason("such credentials have no counterpart: an api_key, or credentials aws, google, entra or oidc"),
    ),
    (
        "aws_.*|bedrock_tags",
        Reason("AWS's own variables and files are read (credentials: aws); the rest has no counterpart"),
    ),
    ("s3_.*|gcs_.*|bucket_name|milvus_.*|valkey_.*|vector_store_.*|max_file_size_mb", _MCP),
    (
        ".*_by_service_tier|provider_affinity_header|.*keepalive.*",
        Reason("has no counterpart: timeouts are per deployment"),
    ),
    ("use_.*|merge_reasoning_.*|fireworks_.*|litellm_trace_id|watsonx_.*|allow_client_.*", _SURFACE),
    ("configurable_clientside_.*", _CLIENT),
    ("model_info", Reason("belongs beside litellm_params: not taken")),
    (
        "additional_drop_params|allowed_openai_params",
        Reason("is on_unsupported: drop, which leaves out what is not taken"),
    ),
    ("cache_control_injection_points", Reason("has no counterpart: clients mark what is to be cached")),
    ("cooldown_time|allowed_fails", Reason("is circuit_breaker of the deployment: for you to write")),
    (
        "vertex_.*|aws_region_name|tenant_id|client_.*|space_id|project_id|api_version|organization|litellm_credential_name",
        Reason("belongs to another provider than the entry's: not taken"),
    ),
    ("blocked", Reason("is out_of_service, which model_info.blocked becomes")),
)

_INFO: Final[Sequence[_Row]] = (
    ("id", _note("deployments have names of their own")),
    (
        "db_model|(created|updated)_(at|by)|key|litellm_provider|supported_.*|supports_.*|source|provider_.*|metadata"
        "|(deprecation|direct_access|access_via|knowledge_).*|comment|rpm|tpm|description|version",
        _note("LiteLLM's own notes on the model: profiles and requests need none of them"),
    ),
    ("access_groups", _note("a name for several models: teams list the models (--teams and --keys do)")),
    (
        "team_.*|access_windows|member_auto_router|internal_router_model|discoverable|tier|allow_fail_open|enable_tag_filtering",
        Reason("has no counterpart: which team may use a model is teams.NAME.models and routes"),
    ),
    ("ptu_.*|cost_per_.*", _PRICE),
    ("health_check_.*|disable_background_health_check|mode", _HEALTH),
)

_TOP: Final[Sequence[_Row]] = (
    ("callback_settings", _TRACES),
    ("guardrails|prompts", _GUARDS),
    (
        "mcp_.*|vector_store_registry|.*agents?.*|search_tools|files_settings|finetune_settings|worker_registry|policies|policy_.*",
        _MCP,
    ),
    ("default_team_settings", _KEYS),
)

_SECTIONS: Final = {
    "top": _TOP,
    "general_settings": (*_GENERAL, *_TOP),
    "router_settings": _ROUTER,
    "litellm_settings": (*_SETTINGS, *_ROUTER, *_TOP),
    "litellm_params": (*_PARAMS, *_INFO),
    "model_info": (*_INFO, *_PARAMS),
}


def reason_in(section: str) -> Callable[[str], Reason]:
    """Return a function that returns the reason for a key of a section of the configuration."""
    return partial(first_reason, _rows(section))


@cache
def _rows(section: str) -> tuple[tuple[re.Pattern[str], Reason], ...]:
    return compiled(_SECTIONS[section])


def compiled(rows: Iterable[_Row]) -> tuple[tuple[re.Pattern[str], Reason], ...]:
    """Return rows of patterns and reasons with compiled patterns."""
    return tuple((re.compile(pattern), reason) for pattern, reason in rows)


def first_reason(rows: Iterable[tuple[re.Pattern[str], Reason]], key: str) -> Reason:
    """Return the reason of the first pattern that matches the whole key."""
    return next((reason for pattern, reason in rows if pattern.fullmatch(key)), _UNKNOWN)
