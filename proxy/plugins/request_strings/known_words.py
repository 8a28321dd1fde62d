"""Words of the APIs: strings that every client sends and that carry no content.

Strings that are not in these lists are shown to guards. So if a list lacks a word, guards only see one string more.
Sources: OpenAI OpenAPI 2.3.0, `anthropic` 2.12.0, JSON Schema 2020-12 with its older drafts, `cohere` 7.3.1, vLLM 0.33
(November 2026).
"""

from typing import Final


def words(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


WORD_KEYS: Final = words(
    """
    audio_format background cache_control detail effort encoding_format finish_reason format image_detail include
    include[] input_type media_type mime_type modalities moderation object output_format phase
    prompt_cache_retention quality reasoning_effort response_format role service_tier size status stream_format
    style summary syntax tool_choice timestamp_granularities[] truncation ttl type verbosity
    """
)
"""Keys whose strings are not shown if they are in WORDS."""

_NAMED: Final = words(
    """
    system developer user assistant tool function
    text input_text output_text refusal image image_url input_image input_audio audio file input_file video_url document
    search_result thinking redacted_thinking tool_use tool_result server_tool_use message reasoning reasoning.text
    reasoning.summary reasoning.encrypted summary_text reasoning_text function_call function_call_output custom
    custom_tool_call custom_tool_call_output item_reference compaction content base64 url ephemeral grammar
    json_object json_schema structural_tag regex choice lark
    """
)
"""Roles, and types of messages, parts, items and tools."""

_SCHEMA: Final = words(
    """
    string number integer boolean object array null
    date-time date time duration email idn-email hostname idn-hostname ipv4 ipv6 uri uri-reference iri iri-reference
    uri-template json-pointer relative-json-pointer regex uuid int32 int64 float double byte binary password
    """
)
"""Types and formats of JSON Schema."""

_SETTINGS: Final = words(
    """
    none auto default any required low medium high minimal xhigh max concise detailed original enabled disabled adaptive
    between_tools flex priority scale standard standard_only in_memory 24h 5m 1h completed in_progress incomplete failed
    unknown commentary final_answer stop length tool_calls end_turn max_tokens transparent opaque hd vivid natural 1K 2K
    256x256 512x512 1024x1024 1024x1536 1536x1024 1792x1024 1024x1792 srt vtt verbose_json diarized_json json b64_json
    sse audio wav mp3 mpeg mpga m4a ogg opus aac flac pcm pcm16 webm mp4 png jpeg jpg webp gif float
    search_query search_document classification clustering similarity word segment
    anthropic-claude-v1 openai-responses-v1 google-gemini-v1 xai-responses-v1
    text/plain image/png image/jpeg image/gif image/webp application/pdf audio/wav audio/mpeg video/mp4
    """
)
"""Settings, their levels, formats and states."""

WORDS: Final = _NAMED | _SCHEMA | _SETTINGS
"""The values that are not shown under WORD_KEYS."""

ENDS: Final = words(
    """
    blocklist cancelled compaction complete completed content_filter content_filtered continuation end_turn eos
    eos_token error_limit error_toxic function_call guardrail_intervened image_other image_prohibited_content
    image_recitation image_safety incomplete language length limit load max_output_tokens max_tokens
    model_context_window_exceeded model_length moderation none other pause_turn prohibited_content recitation refusal
    repetition safety sensitive spii stop stop_sequence stop_token time_limit token_limit tool_call tool_calls tool_use
    unload word
    """
)
"""The finish reasons of OpenAI, Anthropic, Gemini, Cohere, Bedrock, watsonx and the engines, in lower case."""

TIERS: Final = words("auto batch default flex on_demand performance priority reserved scale standard")
"""The service tiers in responses of OpenAI, Anthropic, Groq and Bedrock."""

_KEYWORDS: Final = words(
    """
    $schema $id $ref $defs $anchor $dynamicRef $dynamicAnchor $comment $vocabulary $recursiveRef $recursiveAnchor
    additionalItems additionalProperties allOf anyOf const contains contentEncoding contentMediaType contentSchema
    default definitions dependencies dependentRequired dependentSchemas deprecated description discriminator else
    enum examples exclusiveMaximum exclusiveMinimum if items maxContains maxItems maxLength maxProperties maximum
    minContains minItems minLength minProperties minimum multipleOf not nullable oneOf pattern patternProperties
    prefixItems properties propertyNames readOnly required then title unevaluatedItems unevaluatedProperties
    uniqueItems writeOnly
    """
)
"""Keywords of JSON Schema."""

_MEMBERS: Final = words(
    """
    after annotations arguments audio body budget_tokens cache_reference call_id caller chunking_strategy citations
    citations_enabled content context context_management custom data definition dimensions display documents
    enabled encrypted_content error extra_content file file_data file_id file_url filename function function_call
    functions generate_summary google id image image_url images index input input_audio inference_extra_headers
    inference_extra_params inference_timeout instructions is_error item_id json_schema language logprobs
    max_completion_tokens max_output_tokens max_tokens messages metadata min_p model n name namespace output
    output_config parallel_tool_calls parameters prediction previous_response_id prompt prompt_cache_key query
    reasoning reasoning_content reasoning_details reasoning_signature refusal safety_identifier schema seed
    signature source speed stop stop_sequences store stream stream_options strict suffix system temperature
    thinking thinking_blocks thought_signature tool_call_id tool_calls tool_use_id tools top_k top_logprobs top_n
    top_p truncate url user user_id video_url voice
    """
)
"""Fields of bodies, messages, parts, items and tools."""

KNOWN_KEYS: Final = WORD_KEYS | _NAMED | _KEYWORDS | _MEMBERS
"""Keys of objects that are not shown to guards."""
