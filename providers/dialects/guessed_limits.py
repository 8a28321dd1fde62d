"""Guesses the token limit of a response for vendors that require one, if neither the client nor the configuration gives
a limit and the model is unknown."""

from collections.abc import Callable, Mapping

from providers.models.claude import claude_model
from providers.target import Target


def guessed_limit(target: Target) -> int | None:
    """Return the guessed `max_tokens` of requests without one. Return `None` if no guess is needed, because the
    configuration or the facts about the model give the limit, or because the vendor requires no limit."""
    guess = _GUESSES.get(target.profile.dialect)
    return None if guess is None or target.max_output_tokens is not None else guess(target)


def _guess_for_claude(target: Target) -> int | None:
    # If the upstream name does not show the model, the configured name may show it.
    known = (claude_model(name) for name in target.model_names)
    if any(model.most_output is not None for model in known):
        return None
    return claude_model(target.model_names[0]).usual_output


_GUESSES: Mapping[str, Callable[[Target], int | None]] = dict.fromkeys(
    ("anthropic", "anthropic_vertex", "bedrock_anthropic"), _guess_for_claude
)
"""The functions that guess the limit, by the name of the dialect."""
