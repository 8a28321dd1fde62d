"""The surface as the gateway sees it."""

import orjson

from providers.failure import Refusal
from providers.unified_request import Operation
from proxy.errors import ErrorFacts, field_refused
from proxy.surfaces.responses.responses_surface import RESPONSES
from proxy.surfaces.surface import ModelCard, StoredAction, StoringRenderer, StoringSurface
from tests.proxy.surfaces.responses.kit import refused, rendering


def test_the_surface_refers_to_what_it_stores() -> None:
    assert isinstance(RESPONSES, StoringSurface)
    assert isinstance(rendering(), StoringRenderer)
    assert RESPONSES.reads_context
    assert RESPONSES.referred_ids(b'{"previous_response_id":"resp_1"}').previous == "resp_1"


def test_its_paths_are_served_with_and_without_the_version() -> None:
    served = [(each.method, each.path, each.action) for each in RESPONSES.endpoints]
    assert served[:2] == [("POST", "/v1/responses", Operation.CHAT), ("POST", "/responses", Operation.CHAT)]
    stored = [(method, path, action) for method, path, action in served if isinstance(action, StoredAction)]
    assert {action for _, _, action in stored} == set(StoredAction)
    assert ("GET", "/v1/responses/{id}/input_items", StoredAction.INPUT_ITEMS) in stored
    assert ("DELETE", "/responses/{id}", StoredAction.DELETE) in stored
    assert {"/openai/v1/responses", "/openai/responses"} <= {path for _, path, _ in served}
    assert len(served) == 4 + 4 * len(StoredAction)


def test_errors_have_openai_s_envelope_and_name_the_client_s_fields() -> None:
    refusal = Refusal("max_tokens", "'max_tokens' is not supported by v/m/default.")
    status, body = RESPONSES.error(field_refused(refusal).facts)
    assert status == 400
    assert orjson.loads(body)["error"] == {
        "message": "'max_output_tokens' is not supported by v/m/default.",
        "type": "invalid_request_error",
        "param": "max_output_tokens",
        "code": "unsupported_parameter",
    }
    assert RESPONSES.error(ErrorFacts(404, "t", "c", "m", "model"))[0] == 404


def test_models_have_their_entries_and_a_bare_name_is_openais() -> None:
    card = ModelCard("v/m", 1, "v", None)
    assert orjson.loads(RESPONSES.models([card]))["data"] == [orjson.loads(RESPONSES.model(card))]
    assert RESPONSES.default_vendor == "openai"


def test_a_template_and_a_chat_s_conversation_are_refused_by_the_names_that_the_client_gave() -> None:
    facts = refused(prompt={"id": "p"})
    error = orjson.loads(RESPONSES.error(facts)[1])["error"]
    assert error["param"] == "prompt"
    assert error["message"].startswith("'prompt' names a template of OpenAI's")
    for fields in ({"input": None}, {}):
        facts = refused(messages=[{"role": "user", "content": "hi"}], **fields)
        error = orjson.loads(RESPONSES.error(facts)[1])["error"]
        assert error["param"] == "messages"
        assert error["message"] == "'messages' belongs to chat completions; send 'input' here."
