"""The models list and its pages."""

import orjson
import pytest
from anthropic.types import ModelInfo

from providers.json_types import JsonObject
from proxy.errors import GatewayError
from proxy.surfaces.anthropic.models import model_json, models_json, models_page
from proxy.surfaces.surface import ModelCard
from tests.support.looped import looped

CARDS = [ModelCard(f"v/m{number}", 1795246123, "v", *((8192, 100) if number else ())) for number in range(5)]
LIST = models_json(CARDS)


def page(**query: str) -> JsonObject:
    read: JsonObject = orjson.loads(models_page(LIST, query))
    return read


def ids(of: JsonObject) -> list[str]:
    data = of["data"]
    assert isinstance(data, list)
    return [str(each["id"]) for each in data if isinstance(each, dict)]


def test_a_model_is_one_for_the_sdk() -> None:
    read = ModelInfo.model_validate(model_json(CARDS[1]))
    assert (read.id, read.display_name, read.type) == ("v/m1", "v/m1", "model")
    assert read.created_at.isoformat() == "2026-11-21T07:28:43+00:00"
    assert (read.max_input_tokens, read.max_tokens) == (8192, 100)
    assert not {"max_input_tokens", "max_tokens"} & model_json(CARDS[0]).keys()


def test_the_whole_list_is_one_page() -> None:
    assert page() == orjson.loads(LIST)
    assert (page()["has_more"], page()["first_id"], page()["last_id"]) == (False, "v/m0", "v/m4")
    empty = orjson.loads(models_json([]))
    assert empty == {"data": [], "has_more": False, "first_id": None, "last_id": None}


def test_pages_follow_each_other_both_ways() -> None:
    first = page(limit="2")
    assert (ids(first), first["has_more"], first["last_id"]) == (["v/m0", "v/m1"], True, "v/m1")
    last = page(limit="3", after_id="v/m1")
    assert (ids(last), last["has_more"]) == (["v/m2", "v/m3", "v/m4"], False)
    before = page(limit="2", before_id="v/m4")
    assert (ids(before), before["has_more"]) == (["v/m2", "v/m3"], True)
    assert (ids(page(before_id="v/m1")), page(before_id="v/m1")["has_more"]) == (["v/m0"], False)
    assert ids(page(after_id="gone", limit="1")) == ["v/m0"]


@looped("limit", ["0", "1001", "x", "-1", "1.5", "99999999", "²"])
def test_a_page_has_a_length(limit: str) -> None:
    with pytest.raises(GatewayError) as caught:
        page(limit=limit)
    assert caught.value.facts.param == "limit"
