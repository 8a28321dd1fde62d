"""Recognises fields of a body that instruct a proxy such as LiteLLM and belong to no vendor's API.

These fields are left out and reported as dropped. Clients that used such a proxy continue to send such fields: numbers
of retries, tags for the proxy's log, mock responses. Hosted vendors refuse most of these fields, and engines ignore
them. Names that vendors use too (`metadata`, `priority`, `user`) are not included. Names of fields that would change
the address, the account or the model are not included either, because such fields are refused.

Sources: `all_litellm_params`, `CustomPricingLiteLLMParams` and `StandardCallbackDynamicParams` of litellm 1.80
(`types/utils.py`), LiteLLM's pages "Client-Side Fallbacks", "Caching" and "Mock Requests", November 2026.
"""

import re
from collections.abc import Collection
from typing import Final

TIMEOUTS: Final = ("timeout", "request_timeout")
"""Names under which such a proxy accepts the timeout of a request in seconds. The gateway's own field is
`inference_timeout`."""

GUARDS: Final = "guardrails"
"""The field that names checks (guards) on which the client relies. In this gateway only the operator chooses the
guards, so the field is refused."""

_NAMES: Final = frozenset(
    {"fallbacks", "context_window_fallbacks", "content_policy_fallbacks", "context_window_fallback_dict"}
    | {"default_fallbacks", "disable_fallbacks", "max_fallbacks", "fallback_depth", "mock_testing_fallbacks"}
    | {"num_retries", "max_retries", "retry_policy", "retry_strategy", "cooldown_time", "model_list", "user_config"}
    | {*TIMEOUTS, "stream_timeout", "force_timeout", "tags", "no-log", "cache", "caching", "caching_groups"}
    | {"cache_key", "preset_cache_key", "drop_params", "additional_drop_params", "allowed_openai_params"}
    | {"custom_llm_provider", "api_version", "model_info", "base_model", "hf_model_name", "model_config"}
    | {"rpm", "tpm", "max_parallel_requests", "max_budget", "budget_duration", "region_name", "allowed_model_region"}
    | {"proxy_server_request", "secret_fields", "provider_specific_header", "configurable_clientside_auth_params"}
    | {"user_api_key_dict", "enforced_params", "prompt_id", "prompt_variables", "prompt_version", "prompt_label"}
    | {"ensure_alternating_roles", "user_continue_message", "assistant_continue_message", "fastest_response"}
    | {"merge_reasoning_content_in_choices", "use_litellm_proxy", "use_in_pass_through", "use_client", "logger_fn"}
    | {"supports_system_message", "enable_json_schema_validation", "turn_off_message_logging", "log_delegator"}
    | {"disable_add_transform_inline_image_block", "model_file_id_mapping", "complete_response", "shared_session"}
    | {"tiered_pricing", "router_model_id", "text_completion", "acompletion", "atext_completion", "aimg_generation"}
)
_FAMILIES: Final = re.compile(
    r"litellm_.+|mock_.+|(input|output|search|citation|cache_(creation|read)_input)_(cost|context_cost|token_cost)_?.*"
    r"|(langfuse|langsmith|humanloop|arize|posthog|gcs|wandb|weave)_.+"
)

_CREDENTIALS: Final = re.compile(
    r"(?:.+_)?(?:api_key|access_key|access_key_id|secret|secret_key|secret_access_key|session_token|identity_token"
    r"|ad_token|client_secret|credentials|password)"
)


def is_instruction(name: str) -> bool:
    """Return whether a top-level field of a body instructs a proxy."""
    return name in _NAMES or _FAMILIES.fullmatch(name) is not None


def is_credential(name: str) -> bool:
    """Return whether a top-level field of a body is a credential, judged by its name. Clients must not send credentials
    to the gateway in a body."""
    return _CREDENTIALS.fullmatch(name.casefold()) is not None


def is_left_out(name: str, allowed: Collection[str]) -> bool:
    """Return whether a client's field is left out because it is an instruction for a proxy. If the vendor is such a
    proxy itself, the operator may list the field in `allowed`."""
    return name not in allowed and is_instruction(name)
