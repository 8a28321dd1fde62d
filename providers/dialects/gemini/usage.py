"""Translates the token counts and log probabilities of Gemini's responses into the common shape.

Sources: `google-genai` 3.4.0 types `GenerateContentResponseUsageMetadata`, `ModalityTokenCount`, `LogprobsResult`,
November 2026.
"""

from providers.completion import (
    SEARCH_REQUESTS,
    ContentLogprobs,
    TokenLogprob,
    Usage,
    billed_tier,
    count_of,
    reported_usage,
)
from providers.emulation.logprobs import floor_logprob
from providers.json_types import JsonObject, JsonValue


def usage_of(raw: JsonObject, searches: int = 0) -> Usage | None:
    """Return the token counts with OpenAI's meaning: completion tokens include reasoning tokens. `None` if there are no
    counts. `searches` is the number of queries of the vendor's search, which the vendor's own usage does not include.

    Older models include reasoning tokens in the candidates' count. The total count shows whether this is so for a
    response. Tokens of images, audio, videos and documents are reported separately if there are any.
    """
    prompt, total = _count(raw, "promptTokenCount"), _count(raw, "totalTokenCount")
    if prompt is None:
        return None
    tools = _count(raw, "toolUsePromptTokenCount")
    completion, reasoning = _count(raw, "candidatesTokenCount") or 0, _count(raw, "thoughtsTokenCount")
    if reasoning and prompt + (tools or 0) + completion != total:
        completion += reasoning
    prompt_details = {
        "cached_tokens": _count(raw, "cachedContentTokenCount"),
        "tool_use_prompt_tokens": tools,
        **_modalities(raw.get("promptTokensDetails")),
    }
    completion_details = {
        "reasoning_tokens": reasoning,
        **_modalities(raw.get("candidatesTokensDetails")),
        SEARCH_REQUESTS: searches or None,
    }
    tier = billed_tier(raw.get("serviceTier"), raw.get("trafficType"))
    return reported_usage(
        prompt + (tools or 0), completion, _known_counts(prompt_details), _known_counts(completion_details), tier=tier
    )


def _known_counts(details: dict[str, int | None]) -> dict[str, int] | None:
    return {name: count for name, count in details.items() if count is not None} or None


def _modalities(raw: JsonValue) -> dict[str, int]:
    """Return the number of tokens of each modality, or an empty mapping if all tokens are text."""
    counts: dict[str, int] = {}
    for entry in raw if isinstance(raw, list) else ():
        modality = entry.get("modality") if isinstance(entry, dict) else None
        if isinstance(entry, dict) and modality in ("TEXT", "IMAGE", "AUDIO", "VIDEO", "DOCUMENT"):
            name = f"{str(modality).lower()}_tokens"
            counts[name] = counts.get(name, 0) + (_count(entry, "tokenCount") or 0)
    return counts if counts.keys() - {"text_tokens"} else {}


def _count(raw: JsonObject, name: str) -> int | None:
    return count_of(raw.get(name))


def logprobs_of(raw: JsonValue) -> ContentLogprobs | None:
    """Return each token with its alternatives. The vendor leaves out a log probability of 0, so a missing one counts as
    0."""
    if not isinstance(raw, dict):
        return None
    chosen, tops = raw.get("chosenCandidates"), raw.get("topCandidates")
    if not isinstance(chosen, list):
        return None
    listed = tops if isinstance(tops, list) else []
    tokens: list[TokenLogprob] = []
    for position, one in enumerate(chosen):
        above = listed[position] if position < len(listed) else None
        others = above.get("candidates") if isinstance(above, dict) else None
        top = tuple([_token(other, ()) for other in others]) if isinstance(others, list) else ()
        tokens.append(_token(one, top))
    return ContentLogprobs(tuple(tokens)) if tokens else None


def _token(raw: JsonValue, top: tuple[TokenLogprob, ...]) -> TokenLogprob:
    one = raw if isinstance(raw, dict) else {}
    token, logprob = one.get("token", ""), one.get("logProbability", 0.0)
    number = float(logprob) if isinstance(logprob, int | float) else 0.0
    return TokenLogprob(str(token), floor_logprob(number), None, top)
