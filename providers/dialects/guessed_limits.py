"""Limits on answers that are sent without anybody's word: the vendor demands one, and the model is not known."""

from collections.abc import Callable, Mapping

from providers.models.claude import claude_model
from providers.target import Target


def guessed_limit(target: Target) -> int | None:
    """Return the `max_tokens` of clients who send none, where it is a guess: neither the table nor what is known of
    the model gives it. None where it is not one, or where the vendor demands no limit."""
    guess = _GUESSES.get(target.profile.dialect)
    return None if guess is None or target.max_output_tokens is not None else guess(target)


def _of_claude(target: Target) -> int | None:
    # The name on the wire may hide the model; then the table's tells.
    known = (claude_model(name) for name in target.model_names)
    if any(model.most_output is not None for model in known):
        return None
    return claude_model(target.model_names[0]).usual_output


_GUESSES: Mapping[str, Callable[[Target], int | None]] = dict.fromkeys(
    ("anthropic", "anthropic_vertex", "bedrock_anthropic"), _of_claude
)
"""By the name of the dialect."""
