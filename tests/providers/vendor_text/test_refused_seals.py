"""Refusals of sealed reasoning as each vendor writes them, read by its dialect, and refusals of other things."""

import orjson

from providers.dialect import UpstreamRequest
from providers.failure import Failure, FailureKind
from providers.json_types import JsonObject
from providers.unified_request import Operation
from providers.vendor_text.refused_seals import refuses_seal
from tests.providers.dialects.kit import target_of
from tests.support.looped import looped


def openai(message: str, code: str | None = None) -> JsonObject:
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}


def claude(message: str) -> JsonObject:
    return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}


def google(message: str) -> JsonObject:
    return {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}


def openrouter(raw: JsonObject) -> JsonObject:
    metadata: JsonObject = {"raw": orjson.dumps(raw).decode(), "provider_name": "one"}
    return {"error": {"message": "Provider returned error", "code": 400, "metadata": metadata}}


UNVERIFIED = "The encrypted content gAAA...DQ== could not be verified."
SIGNATURE = "messages.1.content.0: Invalid `signature` in `thinking` block"
MODIFIED = (
    "messages.9.content.5: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified."
    " These blocks must remain as they were in the original response."
)
BOUND = (
    f"{SIGNATURE}. The block is bound to a different conversation. Remove the block, or set "
    '`thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
)
XAI = "Could not decrypt the provided encrypted_content. Ensure the value is the unmodified encrypted_content from a "


def failure(vendor: str, body: JsonObject, status: int = 400) -> Failure:
    target = target_of(vendor, "m")
    sent = UpstreamRequest(target, Operation.CHAT, "https://x.example/v1", b"{}", False)
    return target.dialect.classify(sent, status, {}, orjson.dumps(body))


@looped(
    ("vendor", "body"),
    [
        ("openai", openai(UNVERIFIED, "invalid_encrypted_content")),
        ("openai", openai("x", "invalid_encrypted_content")),
        ("openai", openai(f"{UNVERIFIED} Reason: Encrypted content could not be decrypted or parsed.")),
        ("azure", openai("The encrypted content for item rs_0af9 could not be verified.")),
        ("azure", openai("The encrypted content for item cmp_1 could not be verified. Reason: …")),
        ("xai", {"code": "invalid-argument", "error": f"{XAI}previous response."}),
        ("xai", {"code": "x", "error": "Could not decode the compaction blob. Ensure it is unmodified from the …"}),
        ("anthropic", claude(SIGNATURE)),
        ("anthropic", claude("messages.1.content.0: Invalid `signature` in `thinking`       block")),
        ("anthropic", claude("messages.3.content.0: Invalid signature in thinking block")),
        ("anthropic", claude("messages.23.content.2: Invalid `data` in `redacted_thinking` block")),
        ("anthropic", claude(BOUND)),
        ("anthropic", claude(MODIFIED)),
        ("vertex_anthropic", claude(SIGNATURE)),
        ("vertex_anthropic", google(orjson.dumps(claude(SIGNATURE)).decode())),
        ("bedrock", {"message": f"The model returned the following errors: {SIGNATURE}"}),
        ("bedrock", {"message": "The model returned the following errors: …thinking.signature: Field required"}),
        ("bedrock_anthropic", {"message": f"The model returned the following errors: {MODIFIED}"}),
        ("gemini", google("Corrupted thought signature.")),
        ("gemini", google("Invalid thought signature.")),
        ("gemini", google("Invalid value at 'contents[1].parts[0].thought_signature' (TYPE_BYTES), Base64 …")),
        ("vertex", google("Unable to submit request because Thought signature is not valid.. Learn more: …")),
        ("gemini_compat", google("Corrupted thought signature.")),
        ("openrouter", openrouter(google("Corrupted thought signature."))),
        ("openrouter", openrouter(claude("messages.21.content.1: Invalid `data` in `redacted_thinking` block"))),
        ("openrouter", openrouter({"code": "x", "error": f"{XAI}previous response."})),
    ],
)
def test_a_refused_seal_is_recognised(vendor: str, body: JsonObject) -> None:
    assert refuses_seal(failure(vendor, body))


@looped(
    ("vendor", "status", "body"),
    [
        ("openai", 400, openai("Encrypted content is not supported with this model.")),
        ("openai", 400, openai("Missing required parameter: 'input'.")),
        ("openai", 500, openai(UNVERIFIED, "invalid_encrypted_content")),
        ("openai", 429, openai(UNVERIFIED)),
        ("anthropic", 400, claude("messages.1.content.0.type: Expected `thinking`, but found `tool_use`.")),
        ("anthropic", 400, claude("thinking.budget_tokens: Input should be greater than or equal to 1024")),
        ("gemini", 400, google("Function call is missing a thought_signature in functionCall parts.")),
        ("bedrock", 403, {"message": "The request signature we calculated does not match the signature …"}),
        ("openrouter", 400, openrouter(openai("tool_choice is not supported"))),
    ],
)
def test_other_refusals_are_none_of_a_seal(vendor: str, status: int, body: JsonObject) -> None:
    assert not refuses_seal(failure(vendor, body, status))


def test_a_refusal_inside_a_stream_is_recognised_by_its_message() -> None:
    assert refuses_seal(Failure(FailureKind.INVALID_REQUEST, SIGNATURE))
    assert not refuses_seal(Failure(FailureKind.SERVER, SIGNATURE))
