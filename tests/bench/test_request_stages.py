"""Each stage of one request does the work that it measures. No test checks a time."""

import orjson

from providers.completion import Choice
from tests.bench.request_stages import ANSWER, ANSWER_BYTES, REQUEST, REQUEST_BYTES, STAGES, OneRequest, costs, lines


def test_the_stages_make_an_answer_of_a_request_of_the_common_size() -> None:
    one = OneRequest()
    for stage in STAGES.values():
        stage(one)
    assert (len(REQUEST), len(ANSWER)) == (REQUEST_BYTES, ANSWER_BYTES)
    assert one.key.team.name == "search"
    assert [target.name for target in one.planned.targets] == ["bench/model/default"]
    assert orjson.loads(one.sent.body)["messages"] == orjson.loads(REQUEST)["messages"]
    (choice,) = one.completion.choices
    assert isinstance(choice, Choice)
    answer = orjson.loads(one.body)
    assert answer["choices"][0]["message"]["content"] == choice.text
    assert answer["model"] == "bench/model"


def test_every_stage_has_a_cost_and_the_sum_is_told() -> None:
    found = costs(turns=1, loops=1)
    assert found.keys() == STAGES.keys()
    assert lines({"one": 1.0, "other": 2.5}) == ["  1.00  one", "  2.50  other", "  3.50  sum"]
