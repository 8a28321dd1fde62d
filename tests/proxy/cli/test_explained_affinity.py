"""The part of `explain` on a conversation that the client's headers name, and the secrets that it never prints."""

import json
from collections.abc import Sequence
from pathlib import Path

import orjson
import pytest

from proxy.cli.explain_command import FORMS, ExplainOptions, explain, read_headers
from proxy.cli.terminal import USAGE, CommandError
from proxy.process.load_table import Source
from proxy.routing.session_key import session_number
from proxy.routing.snapshot import ANYONE
from tests.proxy.cli.conftest import CANARY, TABLE
from tests.proxy.cli.test_explain_command import LONG, Output, Writer
from tests.support.looped import looped


def explanation_with(
    table: Source, tmp_path: Path, capsys: Output, headers: Sequence[str], **body: object
) -> list[str]:
    """Return the explanation of a request with headers, as text and as JSON."""
    request = tmp_path / "request.json"
    request.write_bytes(orjson.dumps(body))
    printed = []
    for form in ("text", "json"):
        explain(table, ExplainOptions(str(request), None, None, None, headers), FORMS[form])
        printed.append("".join(capsys.readouterr()))
    return printed


def test_a_header_names_the_conversation_and_no_value_is_printed(
    source: Writer, tmp_path: Path, capsys: Output
) -> None:
    headers = [f"Authorization: Bearer {CANARY}", f"X-Api-Key:{CANARY}", f"Session-Id: {CANARY}"]
    body = {"model": "azure-eu/gpt-4o", "messages": LONG, "prompt_cache_key": "k"}
    text, facts = explanation_with(source(TABLE), tmp_path, capsys, headers, **body)
    assert " by session-id. It ranks\n  azure-eu/gpt-4o: azure-eu/gpt-4o/" in text
    assert json.loads(facts)["affinity"]["key"] == "session-id"
    assert CANARY not in text + facts
    number = session_number(ANYONE.tenant, CANARY)
    assert json.loads(facts)["affinity"]["conversation"] == f"{number:016x}"
    other = explanation_with(source(TABLE), tmp_path, capsys, ["session-id: another"], **body)[1]
    assert json.loads(other)["affinity"]["conversation"] != f"{number:016x}"
    text = explanation_with(
        source(TABLE), tmp_path, capsys, ["user-agent: x"], model="azure-eu/gpt-4o", prompt="p" * 5000
    )[0]
    assert "since neither its headers nor its body name one.\n" in text


@looped("line", [CANARY, f"Authorization {CANARY}", f"a b: {CANARY}", f": {CANARY}", f"a: {CANARY}\r\nb: c", ""])
def test_a_header_that_cannot_be_read_is_named_by_its_place(line: str) -> None:
    with pytest.raises(CommandError) as caught:
        read_headers(["session-id: one", line])
    assert caught.value.status == USAGE
    assert str(caught.value) == "header 2 is not of the form 'name: value' on one line"


WHY_SKIPPED = """
version: 1
vendors:
  openai: {api_key: k}
  anthropic: {api_key: k}
defaults: {on_unsupported: drop}
models:
  openai/a: {policy: weighted, deployments: {one: {out_of_service: true}, two: {}}}
  openai/b: {}
  anthropic/c: {max_output_tokens: 8192}
routes:
  mixed: {policy: weighted, targets: [openai/b, anthropic/c]}
"""


@looped(
    "case",
    [
        ("openai/a", {}, "openai/a/one", "openai/a/one is out of service"),
        ("openai/a", {}, "openai/a/two", None),
        ("mixed", {"seed": 1}, "anthropic/c", "anthropic/c would drop seed"),
        ("mixed", {"logprobs": True}, "anthropic/c", "anthropic/c cannot honour the request"),
        ("mixed", {"logprobs": True}, "openai/b", None),
    ],
)
def test_it_is_told_why_the_first_of_the_ranks_is_skipped(
    source: Writer, tmp_path: Path, capsys: Output, case: tuple[str, dict[str, object], str, str | None]
) -> None:
    model, fields, home, why = case
    for number in range(64):
        headers = [f"session-id: {number}"]
        text, facts = explanation_with(
            source(WHY_SKIPPED), tmp_path, capsys, headers, model=model, messages=LONG, **fields
        )
        (group,) = json.loads(facts)["affinity"]["groups"]
        if group["ranks"][0] == home:
            assert group["skipped"] == why
            assert (f"; the first is skipped: {why}\n" in text) is (why is not None)
            return
    raise AssertionError(f"no conversation of 64 is at home at {home}")
