"""Checks the four forms of a prompt, and the images of a prompt.

Forms and image rules: OpenAI OpenAPI 2.3.0 `CreateCompletionRequest.prompt`, `fireworks-ai` 1.2.28 `images`.
"""

import re
from typing import cast

from providers.json_types import JsonValue
from providers.unified_request import ChatPrompt, Prompt, TextPrompt, TokenPrompt
from proxy.surfaces.request.rule_kinds import Invalid, check_at

IMAGE_MARKER = "<image>"
_FORMS = "must be a string, a list of strings, a list of token ids or a list of lists of token ids"
_TOKENS = "must be a non-empty list of token ids, which are integers of at least 0"
_DATA_URI = re.compile(r"data:image/[\w.+-]+;base64,[A-Za-z0-9+/]", re.ASCII)

_CONFLICT = "conflicting_parameters"

Images = tuple[tuple[str, ...], ...]


def prompt(value: JsonValue) -> TextPrompt | TokenPrompt:
    """Check one prompt or several. A flat list of integers is one prompt, and so is an empty string."""
    if isinstance(value, str):
        return TextPrompt((value,))
    if not isinstance(value, list):
        raise Invalid(_FORMS)
    if not value:
        raise Invalid("must not be an empty list")
    kinds = set(map(type, value))
    if kinds == {str}:
        return TextPrompt(tuple(cast(list[str], value)), listed=True)
    if kinds == {int}:
        return TokenPrompt((_tokens(value),))
    if kinds == {list}:
        sequences = cast(list[list[JsonValue]], value)
        return TokenPrompt(tuple(_tokens(sequence, index) for index, sequence in enumerate(sequences)), listed=True)
    raise Invalid(_FORMS)


def _tokens(sequence: list[JsonValue], *loc: int) -> tuple[int, ...]:
    if set(map(type, sequence)) == {int}:
        tokens = tuple(cast(list[int], sequence))
        if min(tokens) >= 0:
            return tokens
    raise Invalid(_TOKENS, *loc)


def images(value: JsonValue) -> Images:
    """Check a list of lists of data URIs, one list for each prompt. A flat list belongs to the only prompt."""
    if not isinstance(value, list):
        raise Invalid("must be a list of data URIs, or a list of such lists")
    if any(isinstance(item, list) for item in value):
        return tuple([check_at(_uris, item, index) for index, item in enumerate(value)])
    return (_uris(value),)


def _uris(value: JsonValue) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise Invalid("must be a list of data URIs")
    return tuple([check_at(_uri, item, index) for index, item in enumerate(value)])


def _uri(value: JsonValue) -> str:
    if isinstance(value, str) and _DATA_URI.match(value):
        return value
    raise Invalid("must be a data URI such as 'data:image/jpeg;base64,...'")


def match_images(images: Images, prompt: Prompt) -> None:
    """Check that there is a list of images for each prompt, and an image for each image marker. Raises Invalid."""
    if isinstance(prompt, ChatPrompt):
        raise Invalid("goes with a text prompt; in a chat put image parts into the messages", code=_CONFLICT)
    if isinstance(prompt, TokenPrompt):
        raise Invalid("needs a text prompt with '<image>' markers, not token ids", code=_CONFLICT)
    if len(images) != len(prompt.texts):
        raise Invalid("must be a list of lists, one for each prompt")
    for index, (uris, words) in enumerate(zip(images, prompt.texts, strict=True)):
        if len(uris) != words.count(IMAGE_MARKER):
            loc = (index,) if len(images) > 1 else ()
            raise Invalid("must hold as many images as the prompt has '<image>' markers", *loc)
