"""Guesses the token limit of a response for vendors that require one, if neither client nor configuration gives it and
the model is unknown."""

from collections.abc import Callable, Mapping

from providers.models.claude import claude_model
from providers.target import Target


def guessed_limit(target: Target) -> int | None:
    """Return the `max_tokens` for requests without one, if it has to be guessed: neither the configuration nor the
    facts about the model give it. `None` if it need not be guessed, or if the vendor requires no limit."""
    guess = _GUESSES.get(target.profile.dialect)
    return None if guess is None or target.max_output_tokens is not None else guess(target)


def _guess_for_claude(target: Target) -> int | None:
    # The upstream name may not show the model. In that case the configured name may.
    known = (claude_model(name) for name in target.model_names)
    if any(model.most_output is not None for model in known):
        return None
    return claude_model(target.model_names[0]).usual_output


_GUESSES: Mapping[str, Callable[[Target], int | None]] = dict.fromkeys(
    ("anthropic", "anthropic_vertex", "bedrock_anthropic"), _guess_for_claude
)
"""The functions that guess the limit, by the name of the dialect."""
