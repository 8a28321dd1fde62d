"""Fields that instruct a proxy: they are sent only if the operator allows them, and credentials never are."""

from providers.client_extras.proxy_instructions import is_credential, is_instruction, is_left_out
from providers.json_types import JsonValue
from providers.request_fields import REQUEST_FIELDS
from tests.support.looped import looped

INSTRUCTIONS: dict[str, JsonValue] = {
    **{"num_retries": 2, "tags": ["a"], "litellm_metadata": {"a": 1}, "fallbacks": ["x"], "mock_response": "hi"},
    **{"mock_testing_fallbacks": True, "context_window_fallbacks": [{"a": ["b"]}], "drop_params": True},
    **{"allowed_openai_params": ["x"], "additional_drop_params": ["x"], "litellm_session_id": "s", "no-log": True},
    **{"cache": {"no-cache": True}, "custom_llm_provider": "openai", "input_cost_per_token": 1, "rpm": 3},
    **{"langfuse_secret_key": "sk-lf-canary", "proxy_server_request": {"url": "http://10.0.0.1/x"}},
}
CREDENTIALS = (
    *("api_key", "API_Key", "aws_access_key_id", "aws_secret_access_key", "aws_session_token", "azure_ad_token"),
    *("vertex_credentials", "client_secret", "azure_password", "user_api_key", "aws_web_identity_token"),
)


@looped("name", INSTRUCTIONS)
def test_an_instruction_is_left_out_unless_it_is_allowed(name: str) -> None:
    assert is_instruction(name)
    assert is_left_out(name, ())
    assert not is_left_out(name, (name,))


def test_fields_of_vendors_are_no_instructions() -> None:
    vendors = {each.name for each in REQUEST_FIELDS} | {"metadata", "priority", "session_id", "trace", "id", "timeouts"}
    assert [name for name in sorted(vendors) if is_instruction(name) or is_credential(name)] == []


@looped("name", CREDENTIALS)
def test_a_credential_is_known_by_its_name(name: str) -> None:
    assert is_credential(name)
    for word in ("token", "max_tokens", "logprobs", "prompt_cache_key", "tokens", "key"):
        assert not is_credential(word)
