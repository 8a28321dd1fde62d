"""The surface as the gateway uses it."""

import orjson

from providers.unified_request import Operation
from proxy.errors import invalid_key
from proxy.surfaces.anthropic.renderer import MessagesRenderer
from proxy.surfaces.anthropic.surface import ANTHROPIC
from proxy.surfaces.registry import PATHS, for_anthropics_client
from proxy.surfaces.surface import ModelCard, RequestContext
from tests.proxy.surfaces.anthropic.kit import FACTS, body


def test_a_request_is_read_with_the_headers_that_belong_to_it() -> None:
    request = ANTHROPIC.parse(Operation.CHAT, body(), None, RequestContext({"anthropic-beta": "a"}))
    assert request.native is not None
    assert request.native.headers == {"anthropic-beta": "a"}
    assert isinstance(ANTHROPIC.renderer(request, FACTS), MessagesRenderer)


def test_errors_and_models_have_the_vendor_s_form() -> None:
    status, answer = ANTHROPIC.error(invalid_key().facts)
    assert (status, orjson.loads(answer)["error"]["type"]) == (401, "authentication_error")
    card = ModelCard("v/m", 0, "v", None)
    assert orjson.loads(ANTHROPIC.model(card))["type"] == "model"
    assert orjson.loads(ANTHROPIC.models([card]))["data"][0]["id"] == "v/m"


def test_the_models_list_is_shared_by_path() -> None:
    assert for_anthropics_client(PATHS["/v1/models"]).surface is ANTHROPIC
    assert for_anthropics_client(PATHS["/v1/completions"]).surface is not ANTHROPIC
    assert for_anthropics_client(PATHS["/v1/messages"]).surface is ANTHROPIC
