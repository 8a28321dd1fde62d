"""The gateway's own fields of a passed-through request, and requests that vendors would parse differently."""

import orjson
import pytest

from providers.json_types import JsonObject
from providers.unified_request import Task
from proxy.errors import GatewayError
from proxy.gateway.read_passed import MOST_FIELDS, MOST_INPUTS, model_of, read_passed
from tests.support.looped import looped


def read(**body: object) -> JsonObject:
    """Return the content of a moderations body that is passed on."""
    request = read_passed(Task.MODERATIONS, orjson.dumps(body), "v/default")
    assert isinstance(request.content, dict)
    return {**request.content}


def test_the_gateways_own_fields_are_taken_out_of_what_goes_on() -> None:
    body = {"model": "v/m", "input": "x", "inference_timeout": 3, "inference_extra_params": {"a": 1}}
    request = read_passed(Task.MODERATIONS, orjson.dumps(body), None)
    assert (request.model, request.timeout, request.extra_params) == ("v/m", 3, {"a": 1})
    assert request.content == {"model": "v/m", "input": "x"}


@looped(
    ("body", "param"),
    [
        ({"input": ["x"] * (MOST_INPUTS + 1)}, "input"),
        ({"prompt": ["x"] * (MOST_INPUTS + 1)}, "prompt"),
        ({f"f{number}": 1 for number in range(MOST_FIELDS + 1)}, None),
        ({"input": "x", "inference_timeout": "soon"}, "inference_timeout"),
        ({"input": "x", "model": 3}, "model"),
    ],
)
def test_what_no_vendor_takes_is_refused_by_its_name(body: JsonObject, param: str | None) -> None:
    with pytest.raises(GatewayError) as caught:
        read(**body)
    assert (caught.value.facts.status, caught.value.facts.param) == (400, param)


def test_as_many_inputs_as_vendors_take_go_on() -> None:
    assert read(input=["x"] * MOST_INPUTS)["input"] == ["x"] * MOST_INPUTS


def test_a_missing_model_is_the_default_and_without_one_an_error() -> None:
    assert model_of({}, "v/default") == "v/default"
    assert model_of({"model": "v/m"}, "v/default") == "v/m"
    with pytest.raises(GatewayError) as caught:
        model_of({}, None)
    assert caught.value.facts.message == "'model' is required."
