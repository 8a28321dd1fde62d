"""The fields that OpenAI's models refuse, at each host that sells them, through each of their APIs, from each API of
clients.

Each row is a rule: the fields of a client's request, and the fields that the vendor gets or the field that the refusal
names. Sources are with the rules: `providers.models.facts`, `profiles.yaml`.
"""

from typing import Final

from providers.json_types import JsonObject, JsonValue
from tests.proxy.kit.openai_hosts import CHATS, HOSTS, MESSAGES, RESPONSES, Outcome, asking, named
from tests.support.looped import looped

# Sampling beside reasoning --------------------------------------------------------------------------------------------

ALWAYS: Final = (
    "o3",
    "o4-mini",
    "gpt-5",
    "gpt-5-nano",
    "gpt-5.2-chat-latest",
    "gpt-5.1-codex",
    "gpt-5.4-pro",
    "gpt-6-astra",
)
OFF_UNASKED: Final = ("gpt-5.1", "gpt-5.2", "gpt-5.4-mini")
ON_UNASKED: Final = ("gpt-5.5", "gpt-5.6-sol", "gpt-6-luna")


@looped("path", [CHATS[0], CHATS[1], RESPONSES])
@looped("host", HOSTS)
@looped(
    ("models", "effort", "takes"),
    [
        (ALWAYS, None, False),
        (OFF_UNASKED, None, True),
        (OFF_UNASKED, "none", True),
        (OFF_UNASKED, "low", False),
        (ON_UNASKED, None, False),
        (ON_UNASKED, "none", True),
        (ON_UNASKED, "high", False),
    ],
)
def test_models_sample_as_requested_only_while_they_do_not_reason(
    models: tuple[str, ...], effort: str | None, takes: bool, host: str, path: str
) -> None:
    given: JsonObject = {} if effort is None else {"reasoning_effort": effort}
    for model in models:
        for name, value in (("temperature", 0.5), ("top_p", 0.5)):
            found = Outcome(path, named(host, model), asking(path, **given, **{name: value}))
            if takes:
                assert found.body[name] == value, (model, found.refusal)
                continue
            assert f"'{name}' is not supported by" in found.refusal, (model, name, found.body)
            dropping = Outcome(path, named(host, model), asking(path, **given, **{name: value}), "drop")
            assert (name in dropping.body, name in dropping.dropped) == (False, True), (model, name)


@looped("host", HOSTS)
@looped("model", [*ALWAYS, *ON_UNASKED])
@looped(
    ("name", "fields"),
    [
        ("logprobs", {"logprobs": True, "top_logprobs": 2}),
        ("logit_bias", {"logit_bias": {"5": 1}}),
        ("presence_penalty", {"presence_penalty": 0.5}),
        ("frequency_penalty", {"frequency_penalty": 0.5}),
    ],
)
def test_further_sampling_is_refused_by_name_while_models_reason(
    name: str, fields: JsonObject, model: str, host: str
) -> None:
    assert f"'{name}' is not supported by" in Outcome(CHATS[0], named(host, model), asking(CHATS[0], **fields)).refusal


@looped("path", [CHATS[0], CHATS[2], RESPONSES, MESSAGES])
@looped("host", HOSTS)
@looped("model", [*ALWAYS, *OFF_UNASKED, *ON_UNASKED])
def test_values_that_ask_for_nothing_are_left_out_in_silence(model: str, host: str, path: str) -> None:
    neutral: JsonObject = {"temperature": 1, "top_p": 1}
    if path in CHATS:
        neutral |= {"presence_penalty": 0, "frequency_penalty": 0, "logprobs": False, "logit_bias": {}, "stop": None}
    elif path == RESPONSES:
        neutral["top_logprobs"] = 0
    found = Outcome(path, named(host, model), asking(path, **neutral))
    assert (found.refusal, found.dropped, found.emulated) == ("", (), ())
    assert found.body.keys().isdisjoint(neutral)


STOPS: Final[list[JsonValue]] = ["x"]


@looped("host", HOSTS)
@looped("model", [*ALWAYS, *OFF_UNASKED, *ON_UNASKED])
def test_stops_are_looked_for_by_the_gateway(model: str, host: str) -> None:
    for path, name in ((CHATS[0], "stop"), (MESSAGES, "stop_sequences")):
        found = Outcome(path, named(host, model), asking(path, **{name: STOPS}))
        assert ("stop" in found.body, "stop" in found.emulated) == (False, True)


def test_log_probabilities_of_an_own_body_are_refused_where_the_model_has_none() -> None:
    asked: tuple[JsonObject, ...] = ({"top_logprobs": 2}, {"include": ["message.output_text.logprobs"]})
    for fields in asked:
        found = Outcome(RESPONSES, "openai/o3", asking(RESPONSES, **fields))
        assert "logprobs' is not supported by openai/o3" in found.refusal or "'include' is not" in found.refusal


@looped("model", ["gpt-4o-search-preview", "gpt-5-search-api"])
def test_models_that_search_do_not_sample(model: str) -> None:
    for name, value in (("temperature", 0.3), ("top_p", 0.5), ("seed", 1)):
        found = Outcome(CHATS[0], f"openai/{model}", asking(CHATS[0], **{name: value}))
        assert f"'{name}' is not supported by" in found.refusal
    found = Outcome(CHATS[0], f"openai/{model}", asking(CHATS[0], temperature=1, top_p=1, presence_penalty=0))
    assert found.body.keys() == {"model", "messages"}


# Efforts --------------------------------------------------------------------------------------------------------------

WORDS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


@looped("path", [CHATS[0], RESPONSES])
@looped("host", ["openai", "azure", "azv1"])
@looped(
    ("model", "words", "near"),
    [
        ("o3", "low low low medium high high high", "none"),
        ("o3-deep-research", "medium medium medium medium medium medium medium", "none minimal low high xhigh max"),
        ("gpt-5-mini", "minimal minimal low medium high high high", "none"),
        ("gpt-5-pro", "high high high high high high high", "none minimal low medium"),
        ("gpt-5.1", "none low low medium high high high", ""),
        ("gpt-5.1-codex", "low low low medium high high high", "none"),
        ("gpt-5.1-codex-max", "low low low medium high xhigh xhigh", "none"),
        ("gpt-5.2", "none low low medium high xhigh xhigh", ""),
        ("gpt-5.3-chat-latest", "medium medium medium medium medium medium medium", "none minimal low high xhigh max"),
        ("gpt-5.5-pro", "medium medium medium medium high xhigh xhigh", "none minimal low"),
        ("gpt-5.6", "none low low medium high xhigh MAX", ""),
        ("gpt-6-astra", "low low low medium high xhigh MAX", "none"),
    ],
)
def test_an_effort_is_one_that_the_model_has_by_the_api_that_is_called(
    model: str, words: str, near: str, host: str, path: str
) -> None:
    for word, wanted in zip(WORDS, words.split(), strict=True):
        found = Outcome(path, f"{host}/{model}", asking(path, reasoning_effort=word))
        reasoning = found.body.get("reasoning")
        told = reasoning["effort"] if isinstance(reasoning, dict) else found.body.get("reasoning_effort")
        # Chat completions have no `max`.
        highest = "max" if found.api == "responses" else "xhigh"
        assert told == wanted.replace("MAX", highest), (word, found.refusal)
        assert ("reasoning_effort" in found.dropped) == (word in near.split()), word


@looped("host", ["openai", "azure", "azv1"])
@looped(
    ("model", "word"), [("o3", "low"), ("gpt-5-pro", "high"), ("gpt-5.4", "low"), ("gpt-5.2-chat-latest", "medium")]
)
def test_a_budget_of_thinking_becomes_an_effort_that_the_model_has(model: str, word: str, host: str) -> None:
    thinking: JsonObject = {"type": "enabled", "budget_tokens": 1024}
    found = Outcome(MESSAGES, f"{host}/{model}", asking(MESSAGES, thinking=thinking))
    reasoning = found.body.get("reasoning")
    assert (reasoning["effort"] if isinstance(reasoning, dict) else found.body["reasoning_effort"]) == word
