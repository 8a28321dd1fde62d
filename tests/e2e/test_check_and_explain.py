"""`dragoman check` and `dragoman explain` as programs: their output for a wrong config file and for one request."""

import subprocess
from pathlib import Path
from typing import Any

import orjson
import pytest

from providers.json_types import JsonObject
from tests.support.forked_program import run_program

ROOT = Path(__file__).resolve().parents[2]

FIVE_MISTAKES = """\
version: 1
server:
  port: 8080
  prot: 80
defaults:
  timeouts: {total: soon}
vendors:
  openai: {api_key: "${NOT_SET}"}
  local: {profile: llamacpp, base_url: "http://127.0.0.1:8081/v1", allow_private: true}
models:
  openai/gpt-4o: {}
  local/tiny: {}
  openai/gpt-4o: {upstream_model: other}
routes:
  fast:
    targets: [openai/gpt-4o, local/tiyn]
"""
FOUR_VENDORS = """\
version: 1
vendors:
  vllm: {base_url: "http://127.0.0.1:8000/v1", allow_private: true, api_key: "${KEY}"}
  fireworks: {api_key: "${KEY}"}
  openai: {api_key: "${KEY}"}
  anthropic: {api_key: "${KEY}"}
models:
  vllm/m: {}
  fireworks/m: {}
  openai/gpt-4o: {}
  anthropic/claude-haiku-4-5: {max_output_tokens: 8192}
routes:
  any: {targets: [vllm/m, fireworks/m, openai/gpt-4o, anthropic/claude-haiku-4-5]}
"""
KEY = "sk-canary-of-the-operator"
SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"colour": {"type": "string"}},
    "required": ["colour"],
    "additionalProperties": False,
}
ASK: JsonObject = {"model": "any", "prompt": "A colour", "max_tokens": 50, "guided_json": SCHEMA}
NAMED: JsonObject = {"name": "guided_json", "schema": SCHEMA}
STRICT: JsonObject = {"type": "json_schema", "json_schema": {**NAMED, "strict": True}}
TALK: JsonObject = {"messages": [{"role": "user", "content": "A colour"}]}

EXPECTED: dict[str, tuple[str, JsonObject]] = {
    "vllm/m/default": (
        "http://127.0.0.1:8000/v1/completions",
        {"model": "m", "prompt": "A colour", "max_tokens": 50, "response_format": STRICT},
    ),
    "fireworks/m/default": (
        "https://api.fireworks.ai/inference/v1/completions",
        {
            "model": "m",
            "prompt": "A colour",
            "max_tokens": 50,
            "response_format": {"type": "json_schema", "json_schema": NAMED},
            "context_length_exceeded_behavior": "error",
        },
    ),
    "openai/gpt-4o/default": (
        "https://api.openai.com/v1/chat/completions",
        {"model": "gpt-4o", **TALK, "max_completion_tokens": 50, "response_format": STRICT},
    ),
    "anthropic/claude-haiku-4-5/default": (
        "https://api.anthropic.com/v1/messages",
        {
            "model": "claude-haiku-4-5",
            **TALK,
            "max_tokens": 50,
            "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
        },
    ),
}
"""Each target's URL and body. The schema stands in the field that the vendor enforces, and never as `guided_json`."""


def dragoman(*arguments: str, stdin: bytes = b"", **variables: str) -> "subprocess.CompletedProcess[bytes]":
    """Run a command with these variables and no others."""
    return run_program(("-m", "proxy", *arguments), variables, stdin=stdin)


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "table.yaml"
    path.write_text(FOUR_VENDORS, encoding="utf-8")
    return str(path)


def explained(table: str, body: JsonObject, *arguments: str) -> tuple[int, dict[str, Any]]:  # Any: JSON of the program
    done = dragoman("explain", "-", "-c", table, "--output", "json", *arguments, stdin=orjson.dumps(body), KEY=KEY)
    assert not done.stderr, done.stderr
    assert KEY.encode() not in done.stdout
    return done.returncode, orjson.loads(done.stdout)


def test_five_mistakes_are_five_lines_with_their_places(tmp_path: Path) -> None:
    path = tmp_path / "five.yaml"
    path.write_text(FIVE_MISTAKES, encoding="utf-8")
    done = dragoman("check", "-c", str(path))
    assert (done.returncode, done.stderr) == (1, b"")
    first, *lines = done.stdout.decode().splitlines()
    assert first == f"checking {path}"
    assert [line.partition(": ")[0] for line in lines] == [
        f"{path}:4:3 server.prot",
        f"{path}:6:21 defaults.timeouts.total",
        f"{path}:8:21 vendors.openai.api_key",
        f"{path}:13:3 models.openai/gpt-4o",
        f"{path}:16:30 routes.fast.targets.1",
    ]
    for line, word in zip(
        lines, ["did you mean port?", "30s", "NOT_SET", "11:3", "did you mean local/tiny?"], strict=True
    ):
        assert word in line


def test_a_table_with_mistakes_starts_no_gateway(tmp_path: Path) -> None:
    path = tmp_path / "five.yaml"
    path.write_text(FIVE_MISTAKES, encoding="utf-8")
    done = dragoman("serve", "-c", str(path))
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr == dragoman("check", "-c", str(path)).stdout.partition(b"\n")[2]


def test_one_schema_becomes_the_body_that_each_vendor_enforces(table: str) -> None:
    status, found = explained(table, ASK)
    assert status == 0
    requests = {target["deployment"]: target["calls"][0] for target in found["targets"]}
    assert list(requests) == list(EXPECTED)
    for deployment, (url, body) in EXPECTED.items():
        assert (requests[deployment]["method"], requests[deployment]["url"]) == ("POST", url)
        assert requests[deployment]["body"] == body
    assert [target["emulated"] for target in found["targets"]] == [[], [], ["prompt"], ["prompt"]]
    assert [target["chosen"] for target in found["targets"]] == [True, False, False, False]


def test_a_pattern_goes_to_who_has_patterns_or_grammars_and_the_others_say_why_not(table: str) -> None:
    body: JsonObject = {"model": "any", "prompt": "A colour", "max_tokens": 50, "guided_regex": "red|blue"}
    status, found = explained(table, body)
    assert status == 0
    first, second, *others = found["targets"]
    assert first["calls"][0]["body"]["structured_outputs"] == {"regex": "red|blue"}
    assert second["calls"][0]["body"]["response_format"] == {"type": "grammar", "grammar": 'root ::= "red" | "blue"'}
    assert second["emulated"] == ["guided_regex"]
    for target in others:
        assert target["refused"]["param"] == "guided_regex"
        assert target["deployment"] in target["refused"]["message"]
    status, pinned = explained(table, {**body, "model": "openai/gpt-4o"})
    assert status == 1
    assert pinned["error"]["status"] == 400
    assert pinned["error"]["body"]["error"]["code"] == "unsupported_parameter"


def test_the_path_chooses_the_surface_whose_error_the_client_gets(table: str) -> None:
    status, found = explained(table, {**ASK, "model": "nobody/x"}, "--path", "/v4/beta/completions")
    assert (status, found["surface"], found["error"]["status"]) == (1, "scale", 404)
    assert "detail" in found["error"]["body"]


def test_the_text_for_people_shows_the_call_as_it_goes_over_the_wire(table: str) -> None:
    done = dragoman(
        "explain", "-", "-c", table, stdin=orjson.dumps({**ASK, "model": "anthropic/claude-haiku-4-5"}), KEY=KEY
    )
    assert done.returncode == 0
    text = done.stdout.decode()
    assert KEY not in text
    assert "POST https://api.anthropic.com/v1/messages\n" in text
    assert "anthropic-version: " in text
    assert '"output_config": {' in text
