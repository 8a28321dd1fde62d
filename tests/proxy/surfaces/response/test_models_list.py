"""The models list: prices and limits as clients of vLLM and OpenRouter read them."""

import orjson

from providers.pricing import Price
from proxy.surfaces.response.models_list import model_body
from proxy.surfaces.surface import ModelCard
from tests.support.looped import looped


@looped(
    ("per_million", "text"),
    [
        *((0.0, "0"), (0.15, "0.00000015"), (1.0, "0.000001"), (2.5, "0.0000025"), (600.0, "0.0006"), (15, "0.000015")),
        *(
            (1e-7, "0.0000000000001"),
            (1_000_000.0, "1"),
            (10_000_000.0, "10"),
            (0.1 + 0.2, "0.00000030000000000000004"),
        ),
    ],
)
def test_a_price_is_text_in_usd_per_token_without_an_exponent(per_million: float, text: str) -> None:
    card = ModelCard("m", 1, "v", price=Price(per_million, per_million))
    assert orjson.loads(model_body(card))["pricing"] == {"prompt": text, "completion": text}


def test_a_price_of_inputs_alone_says_nothing_of_completions() -> None:
    card = ModelCard("m", 1, "v", price=Price(1.0))
    assert orjson.loads(model_body(card))["pricing"] == {"prompt": "0.000001"}


def test_a_limit_without_a_window_is_told_where_clients_look_for_it() -> None:
    told = orjson.loads(model_body(ModelCard("m", 1, "v", max_output=8)))
    assert told["top_provider"] == {"context_length": None, "max_completion_tokens": 8}
    assert "context_length" not in told
