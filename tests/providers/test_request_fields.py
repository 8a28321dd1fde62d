"""The list of unified fields: it names every field of a request, and its neutral values are found."""

from providers.request_fields import PROTECTED_PARAMS, REQUEST_FIELDS, is_neutral
from providers.unified_request import Params
from tests.providers.neutral import NEUTRAL
from tests.support.looped import looped

ELSEWHERE = {"model", "prompt", "messages", "stream", "stream_options"}
"""Fields of a request outside its params, besides `inference_*`."""

WISHES: dict[str, object] = {
    "n": 2,
    "best_of": 2,
    "echo": True,
    "echo_last": 1,
    "top_p": 0,
    "top_k": 1,
    "min_p": 0.1,
    "presence_penalty": -0.1,
    "repetition_penalty": 0,
    "suffix": " ",
    "logit_bias": {"1": 0.0},
    "stop": ("",),
    "tools": [{}],
    "images": (("data:image/png;base64,AA==",),),
    "response_format": {"type": "json_object"},
    "tool_choice": "auto",
    "modalities": ["text", "audio"],
    "temperature": 1,
    "seed": 0,
    "max_tokens": 16,
    "user": "",
    "web_search_options": {},
    "parallel_tool_calls": False,
    "unheard_of": 0,
}


@looped(("field", "value"), [(field, value) for field, values in NEUTRAL.items() for value in values])
def test_a_value_that_asks_for_nothing_is_neutral(field: str, value: object) -> None:
    assert is_neutral(field, value)


@looped(("field", "value"), WISHES.items())
def test_any_other_value_is_a_wish(field: str, value: object) -> None:
    assert not is_neutral(field, value)


def test_the_params_of_a_request_are_the_fields_of_the_table() -> None:
    names = {"guided" if field.name.startswith("guided_") else field.name for field in REQUEST_FIELDS}
    kept = {name for name in names if not name.startswith("inference_")} - ELSEWHERE
    assert kept == set(Params.__annotations__)


def test_each_name_and_each_spelling_is_one_fields() -> None:
    spellings = [name for field in REQUEST_FIELDS for name in (field.name, *field.aliases)]
    assert len(spellings) == len(set(spellings))


def test_what_is_neutral_has_examples() -> None:
    assert {field.name for field in REQUEST_FIELDS if field.neutral is not None} == NEUTRAL.keys()


def test_extra_params_cannot_set_what_the_gateway_decides() -> None:
    assert {"model", "stream", "stream_options", "messages", "prompt", "n"} == PROTECTED_PARAMS
