"""The models list in OpenAI's form, and one model.

Fields beyond OpenAI's: vLLM 0.32 `entrypoints/openai` (`root`, `max_model_len`); OpenRouter, "Models API Standard"
(`context_length`, `top_provider`, `pricing`); both read in November 2026.
"""

from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache

from providers.pricing import Price
from proxy.surfaces.response.write_sse import ascii_json
from proxy.surfaces.surface import ModelCard


def models_body(cards: Sequence[ModelCard]) -> bytes:
    """Return the body of the list."""
    return ascii_json({"object": "list", "data": [_card(card) for card in cards]})


def model_body(card: ModelCard) -> bytes:
    """Return the body of one model, which is its entry of the list."""
    return ascii_json(_card(card))


def _card(card: ModelCard) -> dict[str, object]:
    """Return an entry in OpenAI's form, with the known facts about the model under the names that clients read. `root`
    and `max_model_len` are vLLM's names (vLLM's benchmark reads `root`, and Continue reads `max_model_len`). The other
    names are OpenRouter's."""
    body: dict[str, object] = {
        "id": card.id,
        "object": "model",
        "created": card.created,
        "owned_by": card.owned_by,
        "root": card.id,
    }
    if card.window is not None:
        body["max_model_len"] = body["context_length"] = card.window
    if card.window is not None or card.max_output is not None:
        body["top_provider"] = {"context_length": card.window, "max_completion_tokens": card.max_output}
    if card.price is not None:
        body["pricing"] = _pricing(card.price)
    return body


@lru_cache(maxsize=256)
def _pricing(price: Price) -> dict[str, str]:
    """Return a price as OpenRouter writes it: text in USD per token, without an exponent.

    The result is cached, because for 10,000 models with the same price this function would otherwise take most of the
    time of the list.
    """
    pricing = {"prompt": _per_token(price.input)}
    if price.output is not None:
        pricing["completion"] = _per_token(price.output)
    if price.cached_input is not None:
        pricing["input_cache_read"] = _per_token(price.cached_input)
    if price.cache_write is not None:
        pricing["input_cache_write"] = _per_token(price.cache_write)
    return pricing


def _per_token(per_million: float) -> str:
    # The price is computed in decimals: 0.15 per million tokens is 0.00000015 per token, which a binary division would
    # not give exactly.
    exact = format(Decimal(repr(per_million)).scaleb(-6), "f")
    return exact.rstrip("0").rstrip(".") if "." in exact else exact
