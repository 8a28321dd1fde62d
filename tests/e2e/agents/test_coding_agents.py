"""Claude Code and Codex CLI edit a file through their tools. The model's part is played by the mock vendor's scripts,
and by vendors of three other APIs that check their requests."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import orjson
import pytest
import pytest_asyncio

from providers.json_types import JsonObject, JsonValue
from tests.e2e.agents.agent_plan import AgentPlan, Move, StrictVendor
from tests.e2e.agents.programs import SETTINGS, claude_code, codex
from tests.e2e.agents.strict_claude import AdaptiveAnthropic, Bedrock
from tests.e2e.agents.strict_gemini import Gemini
from tests.e2e.agents.strict_openai import OpenAI
from tests.e2e.agents.strict_responses import OpenAIResponses
from tests.proxy.kit.tables import digest_of
from tests.support.gateway import ROOT, RunningGateway, running_gateway
from tests.support.nightly import by_day
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Received, Rst, Script

pytestmark = [
    pytest.mark.clients,
    pytest.mark.timeout(300),
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed"),
]

KEY, COUNTERS_KEY, CALLERS_KEY, SEARCHERS_KEY = "sk-of-the-team", "sk-of-counters", "sk-of-callers", "sk-of-searchers"
TABLE = f"""\
version: 1
defaults: {{allow_private: true, api_key: k-4711}}
vendors:
  mock: {{}}
  engine: {{profile: openai_compatible, base_url: "ENGINE/v1"}}
  gemini: {{base_url: "GEMINI"}}
  bedrock: {{base_url: "BEDROCK"}}
  anthropic: {{base_url: "ANTHROPIC"}}
  openai: {{base_url: "OPENAI/v1"}}
models:
  mock/script: {{on_unsupported: drop}} # Codex sends what the models that it knows by name would take
  mock/help: {{upstream_model: script}}
  mock/full: {{upstream_model: overflow}}
  mock/*: {{}}
  engine/*: {{}}
  gemini/*: {{}}
  bedrock/*: {{}}
  anthropic/*: {{}}
  openai/*: {{}}
routes:
  claude-haiku-4-5-20251001: mock/script
  gpt-5.5: mock/script
teams:
  coders: {{keys: ["{digest_of(KEY)}"], models: ["*"]}}
  counters: {{keys: ["{digest_of(COUNTERS_KEY)}"], models: ["*"]}}
  callers: {{keys: ["{digest_of(CALLERS_KEY)}"], models: ["*"]}}
  searchers: {{keys: ["{digest_of(SEARCHERS_KEY)}"], models: ["*"]}}
"""
CLAUDE, OPENAI, ENGINE = "anthropic/claude-opus-4-7", "openai/gpt-5.1", "engine/coder"
GEMINI, BEDROCK = "gemini/gemini-3-flash-preview", "bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0"
VENDORS: dict[str, Callable[[AgentPlan], StrictVendor]] = {
    CLAUDE: AdaptiveAnthropic,
    OPENAI: OpenAI,
    ENGINE: OpenAI,
    GEMINI: Gemini,
    BEDROCK: Bedrock,
}
TRANSLATED = pytest.mark.parametrize("model", by_day([CLAUDE, OPENAI, ENGINE, GEMINI], [*VENDORS]))
"""Bedrock's Claude is tested in the nightly run only: agents of other kinds use it with every change."""
THINKING = (
    'model_reasoning_effort = "high"\nmodel_reasoning_summary = "detailed"\nmodel_supports_reasoning_summaries = true\n'
)
"""The setting with which Codex requests reasoning from a model that it does not know."""

BEFORE, AFTER = "one\ntwo\nthree\n", "one\nzwei\nthree\n"


@dataclass(frozen=True, slots=True)
class Desk:
    """The gateway and the vendors behind it."""

    gateway: RunningGateway
    vendors: dict[str, FakeVendor]

    def play(self, model: str, plan: AgentPlan) -> StrictVendor:
        """Make a vendor follow a plan."""
        return self.follow(model, VENDORS[model](plan))

    def follow(self, model: str, vendor: StrictVendor) -> StrictVendor:
        """Set a vendor's behaviour."""
        self.vendors[model].default = vendor.play
        return vendor

    async def logged(self, team: str, count: int) -> list[JsonObject]:
        """Wait until the access log has that many lines of a team, and return all of them."""
        while len(lines := [line for line in self.gateway.log() if line["team"] == team]) < count:  # noqa: ASYNC110 - a file has no event
            await asyncio.sleep(0.01)
        return lines


def by(key: str, variable: str = "ANTHROPIC_AUTH_TOKEN") -> dict[str, str]:
    """Return the variables of a session of Claude Code with a key."""
    return {variable: key, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def desk(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Desk]:
    async with AsyncExitStack() as stack:
        vendors = {model: await stack.enter_async_context(FakeVendor()) for model in VENDORS}
        table = TABLE
        for model, vendor in vendors.items():
            table = table.replace(model.partition("/")[0].upper(), vendor.base_url)
        gateway = await stack.enter_async_context(running_gateway(table, tmp_path_factory.mktemp("gateway")))
        yield Desk(gateway, vendors)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with two files to work on."""
    made = tmp_path / "work"
    made.mkdir()
    (made / "notes.txt").write_text(BEFORE, encoding="utf-8")
    (made / "other.txt").write_text("other\n", encoding="utf-8")
    return made


def claudes_moves(folder: Path) -> tuple[Move, ...]:
    notes = str(folder / "notes.txt")
    read: tuple[tuple[str, JsonObject], ...] = tuple(
        ("Read", {"file_path": str(folder / name)}) for name in ("notes.txt", "other.txt")
    )
    edit: JsonObject = {"file_path": notes, "old_string": "two", "new_string": "zwei"}
    return (
        Move(0, "Read both first.", read, "I read them."),
        Move(1, "Now the edit.", (("Edit", edit),)),
        Move(2, "That was it.", text="Edited."),
    )


def codexs_moves() -> tuple[Move, ...]:
    return (
        Move(
            0, "Read first.", (("exec_command", {"cmd": "cat notes.txt"}), ("exec_command", {"cmd": "ls"})), "I read."
        ),
        Move(1, "Now the edit.", (("exec_command", {"cmd": "sed -i s/two/zwei/ notes.txt"}),)),
        Move(2, "That was it.", text="Edited."),
    )


def prompt_of(moves: tuple[Move, ...]) -> str:
    """Return a prompt that makes the mock play the moves."""
    script: list[JsonValue] = [
        {
            "thinking": move.thought,
            "text": move.text,
            "calls": [{"name": name, "arguments": given} for name, given in move.calls],
        }
        for move in moves
    ]
    return f"Edit the notes.\n\n```script\n{orjson.dumps(script).decode()}\n```"


async def test_the_readme_says_what_the_sessions_are_given() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in ("ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_MODEL", "CODEX_HOME", "DRAGOMAN_API_KEY"):
        assert name in readme
    _, provider, settings, *_ = SETTINGS.splitlines()
    assert provider in readme
    assert settings.replace("{url}", "http://127.0.0.1:8080") in readme


@pytest.mark.parametrize("header", ["ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY"])
async def test_claude_code_edits_a_file_as_a_script_says(desk: Desk, folder: Path, header: str) -> None:
    prompt = prompt_of(claudes_moves(folder))
    session = await claude_code(desk.gateway.url, "mock/script", prompt, folder, by(KEY, header))
    assert session.status == 0, session.output
    result = session.lines[-1]
    assert (result["result"], result["is_error"], result["num_turns"]) == ("Edited.", False, 4)
    assert (folder / "notes.txt").read_text(encoding="utf-8") == AFTER


async def test_codex_edits_a_file_as_a_script_says(desk: Desk, folder: Path) -> None:
    session = await codex(desk.gateway.url, "mock/script", prompt_of(codexs_moves()), folder)
    assert session.status == 0, session.output
    assert said_by_codex(session.lines) == ["I read.", "Edited."]
    assert session.lines[-1]["type"] == "turn.completed"
    assert (folder / "notes.txt").read_text(encoding="utf-8") == AFTER


@TRANSLATED
async def test_claude_code_edits_a_file_by_another_vendors_model(desk: Desk, folder: Path, model: str) -> None:
    vendor = desk.play(model, AgentPlan(claudes_moves(folder)))
    session = await claude_code(desk.gateway.url, model, "Edit the notes.", folder)
    assert (vendor.wire.refused, session.status) == ([], 0), session.output
    assert session.lines[-1]["result"] == "Edited."
    # For an unknown engine, the gateway does not know either whether its effort can be chosen.
    assert vendor.wire.thinking == [model != ENGINE] * 3
    assert (folder / "notes.txt").read_text(encoding="utf-8") == AFTER


@TRANSLATED
async def test_codex_edits_a_file_by_another_vendors_model(desk: Desk, folder: Path, model: str) -> None:
    plan = AgentPlan(codexs_moves())
    # OpenAI has the API that Codex speaks.
    vendor = desk.follow(model, OpenAIResponses(plan)) if model == OPENAI else desk.play(model, plan)
    session = await codex(desk.gateway.url, model, "Edit the notes.", folder, THINKING)
    assert (vendor.wire.refused, session.status) == ([], 0), session.output
    assert said_by_codex(session.lines) == ["I read.", "Edited."]
    assert said_by_codex(session.lines, "reasoning") == ["Read first.", "Now the edit.", "That was it."]
    assert vendor.wire.thinking == [model != ENGINE] * 3
    assert (folder / "notes.txt").read_text(encoding="utf-8") == AFTER


async def test_codex_applies_a_patch_by_its_custom_tool(desk: Desk, folder: Path) -> None:
    patch = "*** Begin Patch\n*** Update File: notes.txt\n@@\n one\n-two\n+zwei\n three\n*** End Patch\n"
    moves = (Move(0, "", (("apply_patch", {"input": patch}),)), Move(1, "", text="Edited."))
    session = await codex(desk.gateway.url, "gpt-5.5", prompt_of(moves), folder)
    assert session.status == 0, session.output
    assert (folder / "notes.txt").read_text(encoding="utf-8") == AFTER, session.output


@pytest.mark.parametrize(
    ("chosen", "helper"),
    [({}, "claude-haiku-4-5-20251001"), ({"ANTHROPIC_DEFAULT_HAIKU_MODEL": "mock/help"}, "mock/help")],
)
async def test_claude_codes_subagent_asks_for_a_model_of_its_own(
    desk: Desk, folder: Path, chosen: dict[str, str], helper: str
) -> None:
    task = prompt_of((Move(0, "", (("Read", {"file_path": str(folder / "notes.txt")}),)), Move(1, "", text="Read.")))
    given: JsonObject = {"description": "Read the notes", "prompt": task, "model": "haiku"}
    moves = (Move(0, "", (("Agent", given),)), Move(1, "", text="They were read."))
    session = await claude_code(desk.gateway.url, "mock/script", prompt_of(moves), folder, by(CALLERS_KEY) | chosen)
    assert session.status == 0, session.output
    assert session.lines[-1]["result"] == "They were read."
    asked: list[JsonValue] = []
    while asked.count(helper) < 2:
        asked = [line["model"] for line in await desk.logged("callers", 4)]
        await asyncio.sleep(0.01)
    assert set(asked) <= {"mock/script", "mock/help", "claude-haiku-4-5-20251001"}


async def test_claude_codes_search_is_refused_where_the_vendor_has_none(desk: Desk, folder: Path) -> None:
    # A text as its response would be taken for the result of the search.
    moves = (Move(0, "", (("WebSearch", {"query": "notes"}),)), Move(1, "", text="Nothing was found."))
    session = await claude_code(desk.gateway.url, "mock/script", prompt_of(moves), folder, by(SEARCHERS_KEY))
    assert (session.status, session.lines[-1]["result"]) == (0, "Nothing was found."), session.output
    asked = [(line["status"], line.get("code")) for line in await desk.logged("searchers", 3)]
    assert sorted(asked, key=str) == [(200, None), (200, None), (400, "unsupported_parameter")]


async def test_codex_calls_a_tool_of_a_namespace(desk: Desk, folder: Path) -> None:
    given: JsonObject = {"message": prompt_of((Move(0, "", text="I am here."),))}
    # An agent that is done before the turn ends is reported to the model, which then has a third turn.
    moves = (
        Move(0, "", (("multi_agent_v1__spawn_agent", given),)),
        *(Move(turn, "", text="It was begun.") for turn in (1, 2)),
    )
    session = await codex(desk.gateway.url, "mock/script", prompt_of(moves), folder)
    assert session.status == 0, session.output
    items = [line["item"] for line in session.lines if line["type"] == "item.completed"]
    begun = [item["status"] for item in items if isinstance(item, dict) and item.get("tool") == "spawn_agent"]
    assert (begun, set(said_by_codex(session.lines))) == (["completed"], {"It was begun."})


async def test_claude_codes_counts_are_answered_and_start_no_generation(desk: Desk, folder: Path) -> None:
    session = await claude_code(desk.gateway.url, "mock/script", "/context", folder, by(COUNTERS_KEY))
    assert session.status == 0, session.output
    asked = {(line["path"], line["status"]) for line in await desk.logged("counters", 12)}
    assert asked == {("/v1/messages/count_tokens", 200)}


@pytest.mark.nightly
async def test_coding_agents_know_that_their_window_is_full(desk: Desk, folder: Path) -> None:
    session = await claude_code(desk.gateway.url, "mock/full", "Edit the notes.", folder)
    assert session.status == 1
    assert str(session.lines[-1]["result"]).startswith("Prompt is too long"), session.output
    other = folder.parent / "other"
    other.mkdir()
    session = await codex(desk.gateway.url, "mock/full", "Edit the notes.", other)
    assert session.status == 1
    assert "ran out of room in the model's context window" in session.output


class _BrokenOnce:
    """A vendor whose first response breaks off after some of its frames. The first two are the role and reasoning."""

    def __init__(self, vendor: StrictVendor, frames: int) -> None:
        self._vendor = vendor
        self._frames = frames
        self.calls = 0

    def play(self, received: Received) -> Script:
        self.calls += 1
        script = self._vendor.play(received)
        return (*script[: 1 + self._frames], Rst()) if self.calls == 1 else script


async def test_claude_code_asks_again_after_a_stream_that_broke(desk: Desk, folder: Path) -> None:
    vendor = desk.play(ENGINE, AgentPlan(claudes_moves(folder)))
    broken = _BrokenOnce(vendor, 2)
    desk.vendors[ENGINE].default = broken.play
    session = await claude_code(desk.gateway.url, ENGINE, "Edit the notes.", folder)
    assert (vendor.wire.refused, session.status) == ([], 0), session.output
    assert broken.calls == 4
    assert (folder / "notes.txt").read_text(encoding="utf-8") == AFTER


async def test_claude_code_reports_a_stream_that_broke_after_a_whole_block(desk: Desk, folder: Path) -> None:
    vendor = desk.play(ENGINE, AgentPlan(claudes_moves(folder)))
    broken = _BrokenOnce(vendor, 4)
    desk.vendors[ENGINE].default = broken.play
    session = await claude_code(desk.gateway.url, ENGINE, "Edit the notes.", folder)
    assert (session.status, session.lines[-1]["is_error"]) == (1, True), session.output
    assert (folder / "notes.txt").read_text(encoding="utf-8") == BEFORE


@pytest.mark.parametrize("frames", [2, 4])
async def test_codex_asks_again_after_a_stream_that_broke(desk: Desk, folder: Path, frames: int) -> None:
    vendor = desk.play(ENGINE, AgentPlan(codexs_moves()))
    broken = _BrokenOnce(vendor, frames)
    desk.vendors[ENGINE].default = broken.play
    session = await codex(desk.gateway.url, ENGINE, "Edit the notes.", folder)
    assert (vendor.wire.refused, session.status) == ([], 0), session.output
    assert broken.calls == 4
    assert (folder / "notes.txt").read_text(encoding="utf-8") == AFTER


def said_by_codex(lines: Sequence[JsonObject], kind: str = "agent_message") -> list[JsonValue]:
    """Return the texts of the assistant, in order, or its reasoning."""
    items = [line["item"] for line in lines if line["type"] == "item.completed"]
    return [item["text"] for item in items if isinstance(item, dict) and item["type"] == kind]
