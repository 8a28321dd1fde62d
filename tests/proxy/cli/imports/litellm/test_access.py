"""The models that a list grants at LiteLLM. `test_teams` compares whole keys with LiteLLM's own results."""

from proxy.cli.imports.litellm.access import ClientNames, Granted, granted
from tests.support.looped import looped

KNOWN = ClientNames(
    names={
        **{"gpt-4o": "gpt-4o", "claude-x": "claude-x", "my model": "my-model", "azure/d": "azure/d"},
        **{"groq/*": "groq/*", "short": "short"},
    },
    aliases={"short": "gpt-4o"},
    groups={"cheap": ["claude-x", "my model"]},
)


@looped(
    ("models", "names", "unknown"),
    [
        ([], ("*",), ()),
        (["all-proxy-models", "x"], ("*",), ()),
        (["all-team-models"], ("*",), ()),
        (["*"], ("*",), ()),
        (["no-default-models"], (), ()),
        (["my model"], ("my-model",), ()),
        (["gpt-4o"], ("gpt-4o", "short"), ()),
        (["short"], ("short",), ()),
        (["cheap"], ("claude-x", "my-model"), ()),
        (["groq/*"], ("groq/*",), ()),
        (["groq/llama"], ("groq/llama",), ()),
        (["openai/*"], ("gpt-4o", "short"), ()),
        (["azure/*"], ("azure/d",), ()),
        (["zz", "gpt-4o"], ("gpt-4o", "short"), ("zz",)),
        (["xai/*"], (), ("xai/*",)),
        (["a" * 40 + "*" * 20 + "b"], (), ("a" * 40 + "*" * 20 + "b",)),
    ],
)
def test_what_a_list_grants(models: list[str], names: tuple[str, ...], unknown: tuple[str, ...]) -> None:
    assert granted(models, KNOWN) == Granted(names, unknown)


@looped(
    ("inner", "outer", "both"),
    [
        (("*",), ("a",), ("a",)),
        (("a", "b"), ("*",), ("a", "b")),
        (("a", "b"), ("b", "c"), ("b",)),
        (("groq/*",), ("groq/x", "a"), ("groq/x",)),
        (("groq/x", "a"), ("groq/*",), ("groq/x",)),
    ],
)
def test_what_two_lists_grant_together(inner: tuple[str, ...], outer: tuple[str, ...], both: tuple[str, ...]) -> None:
    assert Granted(inner).within(Granted(outer)).names == both
