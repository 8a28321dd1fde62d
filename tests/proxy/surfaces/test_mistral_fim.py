"""Fill-in-the-middle completions: the requests of editors, and the form in which they read the response."""

import orjson

from providers.completion import Choice, Chunk, Completion
from providers.json_types import JsonValue
from providers.unified_request import Operation, TextPrompt, UnifiedRequest
from proxy.surfaces.mistral_fim import FIM
from proxy.surfaces.openai import OPENAI
from tests.proxy.surfaces.kit import FACTS, USAGE, choices, complete, objects, params_at_fault, play, refuse
from tests.support.looped import looped


def fill(**fields: JsonValue) -> UnifiedRequest:
    return complete(FIM, **fields)


def test_a_prompt_and_a_suffix_are_a_text_completion_without_openais_limit() -> None:
    request = fill(prompt="def f(", suffix="    return 1")
    assert (request.operation, request.prompt) == (Operation.COMPLETIONS, TextPrompt(("def f(",)))
    assert request.params == {"suffix": "    return 1", "context_length_exceeded_behavior": "error"}


@looped("given", [{}, {"suffix": None}, {"suffix": ""}])
def test_without_a_suffix_there_is_still_a_middle_to_fill_in(given: dict[str, JsonValue]) -> None:
    request = fill(**given)
    assert request.params["suffix"] == ""
    assert "suffix" in request.injected
    assert "suffix" not in complete(OPENAI, **given).params


def test_mistrals_name_of_the_seed_is_understood_here_and_nowhere_else() -> None:
    assert fill(random_seed=-7).params["seed"] == -7
    assert fill(random_seed=7, seed=7).params["seed"] == 7
    assert complete(OPENAI, random_seed=7).unknown == {"random_seed": 7}
    facts = refuse(FIM, random_seed=7, seed=8)
    assert (facts.code, facts.param) == ("conflicting_parameters", "random_seed")
    assert params_at_fault(refuse(FIM, random_seed=2**63)) == ["random_seed"]


def test_a_whole_answer_is_a_chats() -> None:
    answer = Completion((Choice(0, "x):\n", "stop"),), USAGE)
    body = orjson.loads(FIM.renderer(fill(), FACTS).completion(answer))
    assert body["object"] == "chat.completion"
    (choice,) = choices(body)
    assert choice["message"] == {"role": "assistant", "content": "x):\n", "refusal": None}
    assert choice["finish_reason"] == "stop"


def test_every_delta_of_a_stream_has_its_text() -> None:
    events = (Chunk(text="x"), Chunk(reasoning="hm"), Chunk(text=")"), Chunk(finish_reason="length"), USAGE)
    stream = play(FIM.renderer(fill(stream=True), FACTS), *events)
    assert stream.endswith(b"data: [DONE]\n\n")
    shown = choices(*objects(stream))
    deltas = [choice["delta"] for choice in shown]
    assert deltas == [
        {"content": "x", "role": "assistant"},
        {"content": "", "reasoning_content": "hm"},
        {"content": ")"},
        {"content": ""},
    ]
    assert shown[-1]["finish_reason"] == "length"


def test_its_errors_are_openais() -> None:
    facts = refuse(FIM, max_tokens="many")
    assert FIM.error(facts) == OPENAI.error(facts)
    assert FIM.key_headers == OPENAI.key_headers
