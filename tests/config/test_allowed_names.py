"""The names that the patterns of allow lists match."""

from config.allowed_names import covers
from tests.support.looped import looped


@looped(
    ("pattern", "name", "covered"),
    [
        ("*", "openai/gpt", True),
        ("openai/*", "openai/gpt", True),
        ("openai/*", "openai/*", True),
        ("openai/*", "openai", False),
        ("openai/*", "openai-eu/gpt", False),
        ("openai/*", "*", False),
        ("openai/gpt", "openai/gpt", True),
        ("openai/gpt", "openai/gpt/eu", False),
        ("openai/gpt", "openai/gpt-2", False),
    ],
)
def test_a_pattern_covers_itself_and_what_its_star_stands_for(pattern: str, name: str, covered: bool) -> None:
    assert covers(pattern, name) is covered
