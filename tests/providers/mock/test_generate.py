"""Candidates: limits, stops, order, log probabilities."""

import orjson
import pytest

from providers.json_types import JsonObject, JsonValue
from providers.mock.errors import MockError
from providers.mock.generate import MAX_TOKENS, Candidate, MockCall, MockStyle, generate
from providers.mock.request import parse
from tests.support.looped import looped

ECHO = MockStyle(echo=True)


def texts(style: MockStyle = MockStyle(), **fields: JsonValue) -> list[str]:  # noqa: B008 - frozen
    return [choice.text for choice in choices(style, **fields)]


def choices(style: MockStyle, **fields: JsonValue) -> tuple[Candidate, ...]:
    body = {"model": "m", "prompt": "Say hi", **fields}
    return generate(parse("/completions", orjson.dumps(body)), style).choices


def test_the_same_request_gives_the_same_text() -> None:
    assert texts() == texts()


def test_prompt_seed_suffix_and_index_each_change_the_text() -> None:
    made = texts() + texts(prompt="Say ho") + texts(seed=2) + texts(suffix="end") + texts(n=2)[1:]
    assert len(set(made)) == 5


def test_a_text_ends_by_itself_or_at_the_limit() -> None:
    whole = choices(MockStyle())[0]
    assert (whole.finish, whole.text[-1]) == ("stop", ".")
    cut = choices(MockStyle(), max_tokens=3)[0]
    assert (cut.finish, cut.generated) == ("length", 3)
    assert whole.text.startswith(cut.text)
    assert choices(MockStyle(), max_tokens=whole.generated)[0].finish == "stop"


def test_a_text_that_may_not_end_is_cut_by_the_limit() -> None:
    endless = choices(MockStyle(), max_tokens=300, ignore_eos=True)[0]
    assert (endless.finish, endless.generated) == ("length", 300)


def test_a_length_is_kept_exactly() -> None:
    assert choices(MockStyle(length=500))[0].generated == 500
    assert choices(MockStyle(length=0))[0].text == ""


def test_the_first_complete_stop_string_ends_the_text() -> None:
    stopped = choices(ECHO, prompt="one, two; three", stop=["; ", ","])[0]
    assert (stopped.text, stopped.finish, stopped.matched) == ("one", "stop", ",")


def test_a_stop_string_may_begin_within_a_token() -> None:
    stopped = choices(ECHO, prompt="interpreter at work", stop=["ter at"])[0]
    assert stopped.text == "interpre"
    kept = choices(ECHO, prompt="interpreter at work", stop=["ter at"], include_stop_str_in_output=True)[0]
    assert kept.text == "interpreter at"


def test_a_stop_string_beyond_the_limit_is_not_reached() -> None:
    cut = choices(ECHO, prompt="a b c d", stop=["d"], max_tokens=2)[0]
    assert (cut.text, cut.finish, cut.matched) == ("a b", "length", None)


def test_choices_are_prompt_major() -> None:
    made = choices(ECHO, prompt=["a", "b"], n=2)
    assert [(choice.index, choice.text) for choice in made] == [(0, "a"), (1, "a"), (2, "b"), (3, "b")]


def test_the_best_candidates_are_the_likeliest_and_all_are_counted() -> None:
    body = orjson.dumps({"model": "m", "prompt": "x", "n": 1, "best_of": 8, "max_tokens": 5})
    best = generate(parse("/completions", body), MockStyle())
    alone = choices(MockStyle(), prompt="x", n=8, max_tokens=5)
    assert best.choices[0].text in [choice.text for choice in alone]
    assert (best.prompt_tokens, best.completion_tokens) == (1, 40)
    assert mean(best.choices[0]) == max(mean(choice) for choice in alone)


def mean(choice: Candidate) -> float:
    known = [token.logprob for token in choice.tokens if token.logprob is not None]
    return sum(known) / len(known)


def test_a_repeated_prompt_comes_first_and_its_first_token_has_no_log_probability() -> None:
    made = choices(MockStyle(), echo=True, max_tokens=2, logprobs=2)[0]
    assert made.text.startswith("Say hi ")
    assert made.generated == 2
    assert [token.logprob is None for token in made.tokens] == [True, False, False, False]
    assert made.tokens[0].offset == 0


def test_offsets_count_code_points_from_the_prompts_start() -> None:
    made = choices(ECHO, prompt="hé 👋 you", logprobs=0)[0]
    assert [token.offset for token in made.tokens] == [8, 10, 12]


def test_the_chosen_token_is_the_likeliest_of_those_listed() -> None:
    for token in choices(MockStyle(), logprobs=5)[0].tokens:
        assert token.top[0] == (token.text, token.logprob)
        listed = [logprob for _, logprob in token.top]
        assert len(listed) == 5
        assert listed == sorted(listed, reverse=True)


def test_asking_for_log_probabilities_changes_no_text() -> None:
    assert texts(best_of=5) == texts(best_of=5, logprobs=3)


def test_a_constraint_decides_the_text() -> None:
    assert set(texts(guided_choice=["yes", "no"], n=20)) == {"yes", "no"}
    assert texts(guided_json={"const": 1}, max_tokens=5) == ["1"]


def test_an_empty_text_is_finished() -> None:
    made = choices(MockStyle(empty=True))[0]
    assert (made.text, made.finish, made.generated) == ("", "stop", 0)


def test_an_answer_has_a_largest_size() -> None:
    for fields in ({"n": 3}, {"max_tokens": MAX_TOKENS}):
        assert choices(MockStyle(length=1_000), **fields)
    with pytest.raises(MockError, match="at most 4096 tokens"):
        choices(MockStyle(length=1_000), n=5)
    with pytest.raises(MockError, match="at most 4096 tokens"):
        choices(MockStyle(length=10**9))
    with pytest.raises(MockError, match="at most 4096 tokens and alternatives"):
        choices(MockStyle(length=1_000), logprobs=True, top_logprobs=5)


def scripted(turn: JsonObject, **more: JsonValue) -> Candidate:
    script = f"```script\n{orjson.dumps([turn]).decode()}\n```"
    tools: JsonValue = [{"type": "function", "function": {"name": "f"}}]
    body = {"model": "script", "messages": [{"role": "user", "content": script}], "tools": tools, **more}
    return generate(parse("/chat/completions", orjson.dumps(body)), MockStyle()).choices[0]


TURN: JsonObject = {"thinking": "a b", "text": "c d", "calls": [{"name": "f", "arguments": "e f"}, {"name": "f"}]}


def test_a_scripted_turn_is_the_candidate() -> None:
    made = scripted(TURN)
    assert (made.thought, made.text, made.finish, made.generated) == (("a", " b"), "c d", "tool_calls", 8)
    assert made.calls == (MockCall("f", ("e", " f")), MockCall("f", ("{", "}")))
    assert scripted({"text": "c"}).finish == "stop"


@looped(
    ("limit", "thought", "text", "calls"),
    [(0, 0, "", []), (1, 1, "", []), (3, 2, "c", []), (5, 2, "c d", [1]), (6, 2, "c d", [2]), (7, 2, "c d", [2, 1])],
)
def test_a_scripted_turn_is_cut_at_the_limit(limit: int, thought: int, text: str, calls: list[int]) -> None:
    made = scripted(TURN, max_tokens=limit)
    assert (len(made.thought), made.text, [len(call.arguments) for call in made.calls]) == (thought, text, calls)
    assert (made.finish, made.generated) == ("length", limit)


def test_a_stop_in_a_scripted_text_ends_the_turn_before_its_calls() -> None:
    made = scripted(TURN, stop=" d")
    assert (made.text, made.calls, made.finish, made.matched) == ("c", (), "stop", " d")


def test_a_scripted_turn_has_no_more_tokens_than_any_answer() -> None:
    with pytest.raises(MockError, match=str(MAX_TOKENS)):
        scripted({"calls": [{"name": "f", "arguments": "!" * (MAX_TOKENS + 1)}]})
