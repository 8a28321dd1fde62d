"""Facts about Claude models by name."""

from providers.models.claude import BUDGETS, EFFORT_WORDS, UNKNOWN, claude_model, usual_effort
from tests.support.looped import looped


@looped(
    "name",
    [
        "claude-opus-4-1",
        "claude-opus-4-1-20250805",
        "claude-opus-4-1@20250805",
        "anthropic.claude-opus-4-1-20250805-v1:0",
        "us.anthropic.claude-opus-4-1-20250805-v1:0",
        "anthropic/claude-opus-4.1",
        "Claude-Opus-4-1",
        "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-opus-4-1-20250805-v1:0",
        "claude-opus-4-20250514",
        "claude-opus-4-0",
    ],
)
def test_a_model_is_known_by_any_spelling_of_its_name(name: str) -> None:
    model = claude_model(name)
    assert (model.most_output, model.usual_output, model.efforts) == (32_000, 4_096, ())


def test_a_date_is_not_taken_for_a_minor_version() -> None:
    assert claude_model("claude-sonnet-4-20250514") == claude_model("claude-sonnet-4-0")
    assert claude_model("claude-sonnet-4-20250514") != claude_model("claude-sonnet-4-5-20250929")


@looped(
    ("name", "most", "usual"),
    [
        ("claude-3-opus-20240229", 4_096, 4_096),
        ("anthropic.claude-3-5-sonnet-20241022-v2:0", 8_192, 4_096),
        ("claude-3-7-sonnet-latest", 64_000, 4_096),
        ("claude-sonnet-4@20250514", 64_000, 4_096),
        ("claude-haiku-4-5-20251001", 64_000, 64_000),
        ("global.anthropic.claude-opus-4-6-v1", 128_000, 128_000),
        ("claude-sonnet-5-5", 128_000, 128_000),
        ("claude-opus-9-9", None, 16_384),
        ("my-own-deployment", None, 16_384),
    ],
)
def test_the_output_limit_follows_the_model(name: str, most: int | None, usual: int) -> None:
    model = claude_model(name)
    assert (model.most_output, model.usual_output) == (most, usual)


@looped(
    ("name", "word", "sent"),
    [
        ("claude-haiku-4-5", "high", None),
        ("claude-opus-4-5", "minimal", "low"),
        ("claude-opus-4-5", "max", "high"),
        ("claude-opus-4-6", "xhigh", "max"),
        ("claude-opus-4-7", "xhigh", "xhigh"),
        ("claude-opus-5-5", "max", "max"),
        ("unheard-of", "medium", "medium"),
    ],
)
def test_an_effort_becomes_a_word_that_the_model_has(name: str, word: str, sent: str | None) -> None:
    assert claude_model(name).nearest_effort(word) == sent


@looped(
    ("name", "budgets", "always", "sampling", "forced", "binds"),
    [
        ("claude-sonnet-4-5", True, False, True, True, False),
        ("claude-opus-4-5", True, False, True, True, False),
        ("claude-opus-4-6", False, False, True, True, False),
        ("claude-opus-4-7", False, False, False, True, False),
        ("claude-sonnet-5", False, False, False, True, False),
        ("claude-opus-5", False, False, False, True, False),
        ("claude-haiku-5-5", False, False, False, True, True),
        ("claude-sonnet-5-5", False, True, False, False, True),
        ("claude-fable-5", False, True, False, True, False),
        ("claude-mythos-5-1", False, True, False, False, False),
        ("claude-opus-5-5", False, True, False, False, True),
        ("claude-opus-9", False, False, True, True, False),
    ],
)
def test_what_a_generation_takes(
    name: str, budgets: bool, always: bool, sampling: bool, forced: bool, binds: bool
) -> None:
    model = claude_model(name)
    found = (model.budgets, model.always_thinks, model.sampling, model.forced_choice, model.binds_prefix)
    assert found == (budgets, always, sampling, forced, binds)


def test_budgets_grow_with_the_words_of_effort() -> None:
    assert list(BUDGETS.values()) == sorted(BUDGETS.values())
    assert set(UNKNOWN.efforts) < set(EFFORT_WORDS)


@looped(
    ("names", "effort"),
    [
        (("anthropic.claude-opus-4-8", "x"), "high"),
        (("arn:aws:bedrock:x", "claude-sonnet-4-6"), "high"),
        (("anthropic/claude-opus-5.5", "x"), "medium"),
        (("claude-opus-9", "x"), "high"),
        (("claude-haiku-4-5", "x"), None),
        (("gpt-5.1", "x"), None),
    ],
)
def test_the_effort_that_a_request_leaves_to_the_model(names: tuple[str, ...], effort: str | None) -> None:
    assert usual_effort(*names) == effort
