"""Generations of Gemini's models by their names."""

from dataclasses import replace

from providers.dialects.gemini.model_path import is_modern
from tests.providers.dialects.gemini.kit import TARGET
from tests.support.looped import looped


@looped(
    ("upstream", "model", "newer"),
    [
        ("gemini-2.5-flash", "x", False),
        ("gemini-1.5-pro-002", "x", False),
        ("models/gemini-2.0-flash", "x", False),
        ("gemini-3-pro-preview", "gemini-2.5-pro", True),
        ("gemini-3.8-flash", "x", True),
        ("gemini-10-flash", "x", True),
        ("endpoints/123", "tuned-gemini-2.5-flash", False),
        ("endpoints/123", "support", True),
        ("gemini-flash-latest", "x", True),
    ],
)
def test_the_first_name_that_tells_a_generation_decides(upstream: str, model: str, newer: bool) -> None:
    assert is_modern(replace(TARGET, upstream_model=upstream, model=model)) is newer
