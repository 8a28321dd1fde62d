"""Requests that are planned without the fields that a target refuses."""

import pytest

from providers.adaptation.drop_unsupported import MAX_NAMED, plan_dropping
from providers.failure import Refusal
from providers.target import Target
from providers.unified_request import UnifiedRequest
from tests.providers.dialects.kit import chat_request, target_of
from tests.support.looped import looped

TARGET = target_of("openai", "gpt-4o")


def refusing(*names: str, code: str = "unsupported_parameter") -> object:
    def plan(request: UnifiedRequest, target: Target) -> tuple[str, ...]:
        for name in names:
            if name in request.params or name in (request.unknown or {}):
                raise Refusal(name, "no", code)
        return tuple(request.params)

    return plan


def test_refused_fields_are_left_out_one_after_the_other_and_named() -> None:
    dropped: dict[str, str] = {}
    request = chat_request(temperature=1.5, seed=1, top_p=0.5)
    assert plan_dropping(refusing("seed", "temperature"), request, TARGET, dropped) == ("top_p",)  # type: ignore[arg-type]
    assert dropped == {"seed": "no", "temperature": "no"}
    assert len(dropped) <= MAX_NAMED


@looped(("name", "code"), [("max_tokens", "unsupported_parameter"), ("seed", "invalid_value"), ("absent", "x")])
def test_a_binding_field_and_a_wrong_value_stay_refused(name: str, code: str) -> None:
    request = chat_request(max_tokens=5, seed=1)
    with pytest.raises(Refusal):
        plan_dropping(refusing(name, "max_tokens", code=code), request, TARGET, {})  # type: ignore[arg-type]
