"""The printed explanation: its steps, each complete call without a secret, or the client's error."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from proxy.cli.explain_command import FORMS, ExplainOptions, explain
from proxy.cli.terminal import USAGE, CommandError
from proxy.process.load_table import Source
from tests.proxy.cli.conftest import CANARY, TABLE
from tests.support.looped import looped

Writer = Callable[[str], Source]
Output = pytest.CaptureFixture[str]


@pytest.fixture
def ask(source: Writer, tmp_path: Path, capsys: Output) -> Callable[..., tuple[int, str]]:
    """Explain a body on the configuration with one of everything. Return the exit status and the printed text."""

    def run(form: str, team: str | None = None, path: str | None = None, **body: object) -> tuple[int, str]:
        request = tmp_path / "request.json"
        request.write_bytes(orjson.dumps(body))
        status = explain(source(TABLE), ExplainOptions(str(request), team, None, path), FORMS[form])
        return status, capsys.readouterr().out

    return run


Ask = Callable[..., tuple[int, str]]
MESSAGES = [{"role": "user", "content": "Hi"}]


def facts(printed: tuple[int, str]) -> dict[str, Any]:  # Any: our own JSON
    found: dict[str, Any] = json.loads(printed[1])
    return found


def test_the_text_shows_steps_targets_and_the_whole_call(ask: Ask) -> None:
    status, text = ask("text", model="fast", messages=MESSAGES)
    assert status == 0
    assert text.startswith("POST /v1/chat/completions on the surface openai, as anonymous\nfast was found as\n")
    assert "  route: fast\n  model: openai/gpt-4o-mini\n  model: anthropic/claude-haiku-4-5\n" in text
    assert "1. openai/gpt-4o-mini/default gets\nPOST https://api.openai.com/v1/chat/completions\n" in text
    assert "Authorization: ********\n" in text
    assert '"content": "Hi"' in text
    second = "2. anthropic/claude-haiku-4-5/default would get, if the deployments before it fail or cannot honour the"
    assert f"{second} request\n" in text
    assert "chosen for each request" not in text


def test_the_text_shows_what_follows_a_prompt_that_is_too_long(ask: Ask) -> None:
    status, text = ask("text", model="long", messages=MESSAGES)
    assert status == 0
    before, _, after = text.partition("After a prompt that is too long for its target, instead of the next of these:\n")
    assert "1. openai/gpt-4o-mini/default gets\n" in before
    assert "1. anthropic/claude-haiku-4-5/default gets\nPOST https://api.anthropic.com/v1/messages\n" in after
    assert "2. gpu/llama/default would get, if the deployments before it fail or cannot honour the request\n" in after


def test_the_object_has_it_by_the_kind_of_failure(ask: Ask) -> None:
    found = facts(ask("json", model="long", messages=MESSAGES))
    names = [each["deployment"] for each in found["fallbacks"]["context_length"]]
    assert names == ["anthropic/claude-haiku-4-5/default", "gpu/llama/default"]
    assert facts(ask("json", model="fast", messages=MESSAGES))["fallbacks"] == {}


def test_an_explanation_says_whose_fallbacks_they_are(source: Writer, tmp_path: Path, capsys: Output) -> None:
    request = tmp_path / "request.json"
    request.write_bytes(orjson.dumps({"model": "again", "messages": MESSAGES}))
    table = source(TABLE.replace("routes:\n", "routes:\n  again: long\n", 1))
    for form, words in (("text", "of these (fallbacks of long):"), ("json", '"fallbacks_of": "long"')):
        explain(table, ExplainOptions(str(request), None, None, None), FORMS[form])
        assert words in capsys.readouterr().out


def test_the_text_says_when_chance_decides_and_names_what_is_emulated(ask: Ask) -> None:
    assert "chosen for each request" in ask("text", model="azure-eu/gpt-4o", messages=MESSAGES)[1]
    text = ask("text", model="openai/gpt-4o-mini", messages=MESSAGES, guided_choice=["a", "b"])[1]
    assert text.endswith("emulated: guided_choice\n")


LONG = [{"role": "system", "content": "s" * 5000}, {"role": "user", "content": "Hi"}]


def test_the_conversation_that_orders_the_targets_is_told_with_its_source_and_ranks(ask: Ask) -> None:
    text = ask("text", model="azure-eu/gpt-4o", messages=LONG)[1]
    assert "chosen for each request" not in text
    assert " by prompt; headers may name another. It ranks\n  azure-eu/gpt-4o: azure-eu/gpt-4o/" in text
    assert "1.5 times its share of the requests in flight.\n" in text
    found = facts(ask("json", model="azure-eu/gpt-4o", messages=LONG, prompt_cache_key="k"))["affinity"]
    (group,) = found.pop("groups")
    assert (found["key"], found["without"], len(found["conversation"])) == ("prompt_cache_key", None, 16)
    ranks = group.pop("ranks")
    assert sorted(ranks) == ["azure-eu/gpt-4o/france", "azure-eu/gpt-4o/sweden"]
    assert group == {"name": "azure-eu/gpt-4o", "load": 1.5, "skipped": None}
    assert facts(ask("json", model="azure-eu/gpt-4o", messages=LONG))["targets"][0]["chosen"]


def test_a_request_without_a_conversation_is_told_why(ask: Ask) -> None:
    text = ask("text", model="azure-eu/gpt-4o", messages=MESSAGES)[1]
    assert "does not order the targets, since its prompt is shorter than `least`.\n" in text
    found = facts(ask("json", model="azure-eu/gpt-4o", messages=MESSAGES))["affinity"]
    assert found == {"key": None, "without": "short", "groups": []}
    text = ask("text", path="/v1/completions", model="azure-eu/gpt-4o", prompt="p" * 5000)[1]
    assert "since nothing in its body names one; a header may.\n" in text
    assert facts(ask("json", model="fast", messages=LONG))["affinity"] is None


def test_the_text_gives_the_reason_of_a_target_that_cannot(ask: Ask) -> None:
    status, text = ask("text", model="any", messages=MESSAGES, guided_regex="[ab]+")
    assert status == 0
    assert "1. openai/gpt-4o-mini/default cannot: unsupported_parameter guided_regex: " in text
    assert "3. gpu/llama/default gets\n" in text


def test_the_text_shows_the_clients_error_and_fails(ask: Ask) -> None:
    status, text = ask("text", model="fats", messages=MESSAGES)
    assert status == 1
    assert "Nothing would be sent. The client gets 404:\n{\n" in text
    assert "Did you mean 'fast'?" in text


DROPPING = f"""
version: 1
defaults: {{on_unsupported: drop}}
vendors:
  openai: {{api_key: {CANARY}}}
  anthropic: {{api_key: {CANARY}}}
models:
  openai/gpt-4o-mini:
  anthropic/claude-haiku-4-5: {{max_output_tokens: 8192}}
routes:
  fast: {{targets: [anthropic/claude-haiku-4-5, openai/gpt-4o-mini]}}
"""


@pytest.fixture
def seeded(source: Writer, tmp_path: Path, capsys: Output) -> Callable[[str], str]:
    """Explain a request whose seed is dropped for Claude, on a configuration that allows it."""

    def run(form: str) -> str:
        body = tmp_path / "request.json"
        body.write_bytes(orjson.dumps({"model": "fast", "messages": MESSAGES, "seed": 7, "prediction": {}}))
        assert explain(source(DROPPING), ExplainOptions(str(body), None, None, None), FORMS[form]) == 0
        return capsys.readouterr().out

    return run


def test_it_is_said_why_a_target_comes_after_others_and_what_is_left_out(seeded: Callable[[str], str]) -> None:
    before, after = seeded("text").split("2. anthropic/claude-haiku-4-5/default would get", 1)
    assert "1. openai/gpt-4o-mini/default gets\nPOST" in before
    assert "\nIt comes after targets that honour seed, which it would drop.\nPOST" in after
    assert after.endswith(
        "dropped: seed, prediction\n  'seed' is not supported by anthropic/claude-haiku-4-5/default.\n"
    )
    targets = json.loads(seeded("json"))["targets"]
    assert [(each["behind_for"], each["dropped"]) for each in targets] == [([], []), (["seed"], ["seed", "prediction"])]


def test_the_json_holds_the_same(ask: Ask) -> None:
    found = facts(ask("json", model="any", messages=MESSAGES, guided_regex="[ab]+"))
    assert (found["surface"], found["path"], found["team"]) == ("openai", "/v1/chat/completions", "anonymous")
    assert found["steps"][0] == {"rule": "route", "name": "any"}
    assert (found["model"], found["order_drawn"], found["error"]) == ("any", True, None)
    refused, _, chosen = found["targets"]
    assert refused["deployment"] == "openai/gpt-4o-mini/default"
    assert refused["refused"]["param"] == "guided_regex"
    assert (refused["chosen"], chosen["chosen"]) == (False, True)
    (call,) = chosen["calls"]
    assert call["method"] == "POST"
    assert call["url"] == "http://10.0.0.1:8000/v1/chat/completions"
    assert call["body"]["model"] == "meta-llama/Llama-3.3-70B-Instruct"
    assert call["operation"] == "chat"


def test_the_json_of_an_error_is_status_and_body(ask: Ask) -> None:
    printed = ask("json", path="/v5/completions", model="gpu/llama", prompt=7)
    assert printed[0] == 1
    found = facts(printed)
    assert found["targets"] == []
    assert found["error"]["status"] == 422
    assert found["error"]["body"]["detail"]


def test_the_team_is_the_one_named(ask: Ask) -> None:
    found = facts(ask("json", team="search", model="cheap", messages=MESSAGES))
    assert found["steps"][0] == {"rule": "team route", "name": "cheap"}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("model", ["fast", "any", "azure-eu/gpt-4o", "nothing"])
def test_no_secret_is_printed(ask: Ask, form: str, model: str) -> None:
    assert CANARY not in ask(form, model=model, messages=MESSAGES)[1]


def test_a_body_may_come_on_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    body = io.TextIOWrapper(io.BytesIO(b'{"model": "mock/echo", "prompt": "hi"}'))
    monkeypatch.setattr("sys.stdin", body)
    assert explain(Source(None, {}), ExplainOptions("-", None, None, None), FORMS["text"]) == 0
    assert capsys.readouterr().out.startswith("POST /v1/completions on the surface openai")


def test_a_body_that_cannot_be_read_is_one_line() -> None:
    with pytest.raises(CommandError, match=r"cannot read the request nowhere\.json: No such file or directory"):
        explain(Source(None, {}), ExplainOptions("nowhere.json", None, None, None), FORMS["text"])


def test_a_path_of_another_surface_is_wrong_usage(tmp_path: Path) -> None:
    request = tmp_path / "request.json"
    request.write_text("{}", encoding="utf-8")
    with pytest.raises(CommandError, match="belongs to the surface openai") as caught:
        explain(Source(None, {}), ExplainOptions(str(request), None, "scale", "/v1/completions"), FORMS["text"])
    assert caught.value.status == USAGE


def test_a_request_that_refers_to_stored_responses_is_wrong_usage(tmp_path: Path) -> None:
    request = tmp_path / "request.json"
    request.write_text('{"model": "mock/echo", "previous_response_id": "resp_1", "input": "x"}', encoding="utf-8")
    with pytest.raises(CommandError, match="refers to resp_1, which only a running gateway has stored") as caught:
        explain(Source(None, {}), ExplainOptions(str(request), None, "responses", None), FORMS["text"])
    assert caught.value.status == USAGE


LIMITED = """\
version: 1
vendors: {mock: {}}
models: {mock/echo: {price: {input: 1, output: 2}}, mock/words: {price: {input: 0, output: 0}}}
routes: {cheap: {targets: [mock/words]}}
teams:
  search:
    keys: ["sha256:1111111111111111111111111111111111111111111111111111111111111111"]
    models: ["*"]
    limits: {requests_per_minute: 600}
    budget: {usd: 5, per: day, at: 80%, then: {route: cheap}}
"""


def explain_limits(source: Writer, tmp_path: Path, form: str, team: str) -> int:
    request = tmp_path / "request.json"
    request.write_bytes(orjson.dumps({"model": "mock/echo", "max_tokens": 64, "prompt": "x" * 40}))
    return explain(source(LIMITED), ExplainOptions(str(request), team, None, None), FORMS[form])


def test_the_text_shows_what_the_request_is_held_to(source: Writer, tmp_path: Path, capsys: Output) -> None:
    assert explain_limits(source, tmp_path, "text", "search") == 0
    text = capsys.readouterr().out
    assert "These limits apply, with 1 request and about 74 tokens; beyond a limit the client gets 429:\n" in text
    assert "  team search: 600 requests per minute\n" in text
    assert "  team search: 5 USD per day; once 80% are spent: requests go to cheap\n" in text
    assert "the running gateway knows it" in text


def test_the_object_has_the_limits_too(source: Writer, tmp_path: Path, capsys: Output) -> None:
    assert explain_limits(source, tmp_path, "json", "search") == 0
    limits = json.loads(capsys.readouterr().out)["limits"]
    assert limits["tokens"] == 74
    assert limits["held_to"]["team search"][0] == "600 requests per minute"


def test_the_answer_cache_of_a_name_is_told(source: Writer, tmp_path: Path, capsys: Output) -> None:
    request = tmp_path / "request.json"
    request.write_bytes(orjson.dumps({"model": "mock/echo", "temperature": 0, "messages": MESSAGES}))
    table = source("version: 1\nvendors: {mock: {}}\nmodels: {mock/echo: {cache: {stale: 1h}}}\n")
    printed = []
    for form in ("text", "json"):
        assert explain(table, ExplainOptions(str(request), None, None, None), FORMS[form]) == 0
        printed.append(capsys.readouterr().out)
    assert "Responses are cached 600 s and 3600 s more while no deployment answers" in printed[0]
    told = {"ttl": 600.0, "stale": 3600.0, "scope": "team", "where": "memory", "max_bytes": 262144}
    assert json.loads(printed[1])["cache"] == {**told, "this_request": "this request's is"}


@looped(("model", "why"), [("gpt-5.1-codex", "the model has no other API"), ("gpt-4o-mini", None)])
def test_it_is_said_why_a_request_goes_to_the_responses_api(
    source: Writer, tmp_path: Path, capsys: Output, model: str, why: str | None
) -> None:
    request = tmp_path / "request.json"
    request.write_bytes(orjson.dumps({"model": f"openai/{model}", "messages": MESSAGES}))
    table = source(f"version: 1\nvendors: {{openai: {{api_key: {CANARY}}}}}\nmodels: {{'openai/*': {{}}}}\n")
    said = {}
    for form in ("text", "json"):
        assert explain(table, ExplainOptions(str(request), None, None, None), FORMS[form]) == 0
        said[form] = capsys.readouterr().out
    assert (f"/v1/responses\nby the vendor's Responses API: {why}\n" in said["text"]) is (why is not None)
    assert json.loads(said["json"])["targets"][0]["calls"][0]["responses_because"] == why


HEDGED = """\
version: 1
defaults: {hedge: auto}
vendors: {openai: {api_key: "k"}, anthropic: {api_key: "k"}}
models: {openai/gpt-4o-mini: {}, anthropic/claude-haiku-4-5: {}}
routes: {both: {targets: [openai/gpt-4o-mini, anthropic/claude-haiku-4-5]}}
"""


def test_whether_a_request_may_have_a_second_attempt_is_told_with_the_reason(
    source: Writer, tmp_path: Path, capsys: Output
) -> None:
    rules = "after 1.5x, share 3%, burst 20, 1 USD per hour"
    cases: list[tuple[str, dict[str, object], str | None]] = [
        ("/v1/chat/completions", {"model": "both", "messages": MESSAGES}, None),
        ("/v1/chat/completions", {"model": "openai/gpt-4o-mini", "messages": MESSAGES}, "there is one deployment"),
        ("/v1/chat/completions", {"model": "both", "messages": MESSAGES, "store": True}, "its response is stored"),
        ("/v1/responses", {"model": "both", "input": "Hi."}, "its response is stored"),
        ("/v1/responses", {"model": "both", "input": "Hi.", "store": False}, None),
        ("/v1/embeddings", {"model": "both", "input": "Hi."}, "it is not for completions"),
    ]
    for path, body, why in cases:
        request = tmp_path / "request.json"
        request.write_bytes(orjson.dumps(body))
        printed = {}
        for form in ("text", "json"):
            explain(source(HEDGED), ExplainOptions(str(request), None, None, path), FORMS[form])
            printed[form] = capsys.readouterr().out
        said = f"It may have a second attempt: {rules}.\n" if why is None else f"It has no second attempt: {why}.\n"
        assert said in printed["text"]
        found = json.loads(printed["json"])["hedge"]
        assert found == {"after": "1.5x", "share": 0.03, "burst": 20, "usd_per_hour": 1.0, "not_this_request": why}


def test_an_explanation_says_why_a_field_is_dropped(source: Writer, tmp_path: Path, capsys: Output) -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
    request = tmp_path / "request.json"
    body = {"model": "openai/gpt-5.6", "messages": MESSAGES, "tools": [tool], "seed": 7, "user": "u"}
    request.write_bytes(orjson.dumps(body))
    table = source("version: 1\nvendors: {openai: {api_key: k}}\nmodels: {openai/gpt-5.6: {on_unsupported: drop}}\n")
    because = "this request goes by the Responses API, which has no such field (the model takes tools in chats only if "
    why = f"'seed' is not supported by openai/gpt-5.6/default: {because}'reasoning_effort' is 'none')."
    explain(table, ExplainOptions(str(request), None, None, None), FORMS["text"])
    text = capsys.readouterr().out
    assert f"dropped: seed\n  {why}\n" in text
    explain(table, ExplainOptions(str(request), None, None, None), FORMS["json"])
    assert json.loads(capsys.readouterr().out)["targets"][0]["why_dropped"] == {"seed": why}
