"""Check Replicate's predictions against its client's type (replicate 1.0.7).

Each model has its own inputs. The inputs of Meta's language models are checked, as their schemas list them.
"""

from typing import Any  # the SDK is not installed for the type check

import orjson
from replicate.prediction import Prediction  # type: ignore[import-not-found]

_INPUTS: dict[str, type | tuple[type, ...]] = {
    "prompt": str,
    "max_tokens": int,
    "min_tokens": int,
    "temperature": (int, float),
    "top_p": (int, float),
    "top_k": int,
    "presence_penalty": (int, float),
    "frequency_penalty": (int, float),
}


def check_body(operation: str, body: bytes) -> None:
    """Raise AssertionError for fields that a prediction does not have, or inputs of another type."""
    sent: dict[str, Any] = orjson.loads(body)
    assert operation == "completions", operation
    assert sent.keys() <= {"input", "version"}, sent.keys()
    for name, value in sent["input"].items():
        assert isinstance(value, _INPUTS[name]), (name, value)


def check_answer(body: bytes) -> None:
    """Raise unless the client would read the prediction."""
    Prediction.parse_obj({"started_at": None, "completed_at": None, **orjson.loads(body)})
