"""Renders log probabilities in the form that the client requested.

Source: OpenAI OpenAPI 2.3.0. A text completion with `logprobs: true` gets both forms in one object, which the openai,
scale-gp, scale-gp-beta and both generations of Fireworks SDKs can parse.
"""

from collections.abc import Mapping

from providers.completion import ContentLogprobs, LegacyLogprobs, Logprobs, TokenLogprob
from providers.emulation.logprobs import Offsets, floor_logprob, to_content, to_legacy
from providers.unified_request import TextPrompt, UnifiedRequest


class TextLogprobs:
    """Renders log probabilities of text choices. It stores each choice's offset in the text across a stream."""

    __slots__ = ("_merged", "_offsets", "_request", "_wanted")

    def __init__(self, request: UnifiedRequest) -> None:
        wanted = request.params.get("logprobs")
        self._wanted = wanted is not None
        self._merged = wanted is not None and wanted.shape == "content"
        self._request = request
        self._offsets: dict[int, Offsets] = {}

    def render(self, index: int, logprobs: Logprobs | None) -> dict[str, object] | None:
        """Return the form with four arrays, together with the `content` form if the client requested that form; `None`
        if the client requested no log probabilities."""
        if logprobs is None or not self._wanted:
            return None
        offsets = self._offsets.get(index)
        if offsets is None:
            offsets = self._offsets[index] = Offsets(self._base(index))
        legacy = to_legacy(logprobs, offsets) if isinstance(logprobs, ContentLogprobs) else logprobs
        arrays = _arrays(legacy, offsets)
        return {**content_json(logprobs), **arrays} if self._merged else arrays

    def _base(self, index: int) -> int:
        request = self._request
        prompt = request.prompt
        position = index // request.params.get("n", 1)
        if request.params.get("echo") or not isinstance(prompt, TextPrompt) or position >= len(prompt.texts):
            return 0
        return len(prompt.texts[position])


def _arrays(legacy: LegacyLogprobs, offsets: Offsets) -> dict[str, object]:
    given = legacy.text_offset
    tops = legacy.top_logprobs
    return {
        "tokens": legacy.tokens,
        "token_logprobs": [None if value is None else floor_logprob(value) for value in legacy.token_logprobs],
        "top_logprobs": None if tops is None else [_map(top) for top in tops],
        "text_offset": offsets.of_texts(legacy.tokens) if given is None else given,
    }


def _map(top: Mapping[str, float] | None) -> dict[str, float] | None:
    return None if top is None else {token: floor_logprob(value) for token, value in top.items()}


def chat_logprobs(request: UnifiedRequest, logprobs: Logprobs | None) -> dict[str, object] | None:
    """Return log probabilities in the form of chat responses; `None` if the client requested none."""
    return None if logprobs is None or "logprobs" not in request.params else content_json(logprobs)


def content_json(logprobs: Logprobs) -> dict[str, object]:
    """Return the `content` and `refusal` lists. A list without tokens is null, as OpenAI sends it."""
    lists = to_content(logprobs) if isinstance(logprobs, LegacyLogprobs) else logprobs
    return {"content": _tokens(lists.content), "refusal": _tokens(lists.refusal)}


def _tokens(tokens: tuple[TokenLogprob, ...]) -> list[dict[str, object]] | None:
    if not tokens:
        return None
    return [{**_token(token), "top_logprobs": [_token(top) for top in token.top]} for token in tokens]


def _token(token: TokenLogprob) -> dict[str, object]:
    return {"token": token.token, "logprob": floor_logprob(token.logprob), "bytes": token.bytes}
