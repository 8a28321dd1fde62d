"""The feature matrix as an operator reads it: a line for each profile and each feature, and the whole as JSON."""

import json

import pytest

from providers.capabilities import FEATURES, Support
from providers.dialects.capability_matrix import count_cells, matrix_entries, summarize
from providers.profiles.load_profiles import load_profiles
from providers.unified_request import Operation
from proxy.cli.main import main
from proxy.cli.terminal import USAGE
from proxy.cli.vendors_command import COLUMNS, FEATURE_COLUMNS, vendors_json, vendors_text

Output = pytest.CaptureFixture[str]


def lines(output: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in output.splitlines()]


def test_each_profile_is_a_line_with_its_address_and_sizes(capsys: Output) -> None:
    assert vendors_text(None) == 0
    found = lines(capsys.readouterr().out)
    assert found[0] == list(COLUMNS)
    assert [line[0] for line in found[1:-2]] == list(load_profiles())
    anthropic = next(line for line in found if line[0] == "anthropic")
    counts = [str(count) for count in count_cells(matrix_entries([load_profiles()["anthropic"]])).values()]
    assert anthropic == ["anthropic", "anthropic", "as a chat", *counts, "https://api.anthropic.com"]
    assert found[-1] == [f"{summarize(matrix_entries(load_profiles().values()))}; `dragoman vendors NAME` shows them."]


@pytest.mark.parametrize(
    ("profile", "prompts", "address"),
    [
        ("openai", "by model", "https://api.openai.com/v1"),
        ("vllm", "as they are", "http://localhost:8000/v1"),
        ("mistral", "as a chat, with a suffix as they are", "https://api.mistral.ai/v1"),
        ("openai_compatible", "as they are", "the operator's own"),
    ],
)
def test_a_line_says_how_prompts_are_asked_and_where(profile: str, prompts: str, address: str, capsys: Output) -> None:
    vendors_text(None)
    (line,) = (line for line in lines(capsys.readouterr().out) if line[:1] == [profile])
    assert (line[2], line[-1]) == (prompts, address)


def test_a_name_shows_every_feature_with_the_means_or_the_reason(capsys: Output) -> None:
    assert vendors_text("anthropic") == 0
    found = lines(capsys.readouterr().out)
    assert found[0] == ["anthropic: https://api.anthropic.com"]
    start = found.index(list(FEATURE_COLUMNS)) + 1
    assert [line[0] for line in found[start:]] == list(FEATURES)
    shown = {line[0]: line[1:] for line in found[start:]}
    assert shown["temperature"] == ["steering", "native", "native"]
    assert shown["n"] == ["binding", "emulated", "emulated", "one call for each"]
    assert shown["messages"] == ["binding", "-", "native"]
    assert shown["prompt"] == ["binding", "emulated", "-", "sent as one message of the user"]
    assert shown["echo"][:4] == ["binding", "emulated", "refused", "completions: the prompt is added before the text"]
    assert shown["prediction"] == ["advisory", "left out", "left out", "it promises nothing about the response"]
    assert shown["store"][:3] == ["steering; advisory if false", "refused", "refused"]


def test_further_models_show_what_differs(capsys: Output) -> None:
    vendors_text("deepseek")
    shown = capsys.readouterr().out
    first, _, others = shown.partition("\n\ndeepseek-reasoner, where it differs from deepseek-chat:\n")
    second = others.partition("\n\n")[0]
    assert len(lines(first)) > len(FEATURES)
    sampling = {"temperature", "top_p", "presence_penalty", "frequency_penalty"}
    assert {line[0] for line in lines(second)} >= {"FEATURE", "best_of", "logprobs", *sampling}
    assert "temperature" not in {line[0] for line in lines(second) if line[2:] == ["native", "native"]}


def test_an_endpoint_that_a_model_lacks_is_said_once(capsys: Output) -> None:
    vendors_text("azure")
    raw = capsys.readouterr().out.partition("gpt-35-turbo-instruct, where")[2]
    assert raw.count("the model takes raw prompts only; use a completions endpoint") == 1
    assert "chat is refused: the model takes raw prompts only" in raw
    assert ["temperature", "steering", "native", "-"] in lines(raw)


def test_json_has_every_cell(capsys: Output) -> None:
    assert vendors_json(None) == 0
    facts = json.loads(capsys.readouterr().out)
    told = {
        (each["name"], model["model"], operation, name): (cell["class"], cell["support"], cell["how"])
        for each in facts["vendors"]
        for model in each["models"]
        for operation in Operation
        for name, cell in model[operation].items()
    }
    matrix = {
        (row.profile, row.model, row.operation, name): (FEATURES[name].field_class, cell.support, cell.how)
        for row in matrix_entries(load_profiles().values())
        for name, cell in row.cells.items()
    }
    assert told == matrix
    assert all(set(each["sizes"]) == set(Support) for each in facts["vendors"])


def test_json_of_a_name_has_the_same_form(capsys: Output) -> None:
    assert vendors_json("mock") == 0
    (mock,) = json.loads(capsys.readouterr().out)["vendors"]
    assert (mock["name"], mock["base_url"], mock["prompts"]) == ("mock", "mock://builtin/v1", "as they are")


@pytest.mark.parametrize("arguments", [["vendors", "antropic"], ["vendors", "antropic", "--json"]])
def test_an_unknown_name_gets_the_nearest(arguments: list[str], capsys: Output) -> None:
    assert main(arguments) == USAGE
    meant = "anthropic or vertex_anthropic or bedrock_anthropic"
    assert capsys.readouterr().err == f"dragoman: no profile is called 'antropic'; did you mean {meant}?\n"


def test_the_command_line_chooses_the_form(capsys: Output) -> None:
    assert main(["vendors", "mock"]) == 0
    assert capsys.readouterr().out.startswith("mock: mock://builtin/v1\n")
    assert main(["vendors", "mock", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["vendors"][0]["name"] == "mock"


def test_a_name_shows_its_tasks_too(capsys: Output) -> None:
    assert vendors_text("voyage") == 0
    shown = capsys.readouterr().out
    assert "embeddings with voyage-3.5, wire form openai:" in shown
    assert "rerank with rerank-2.5, wire form ranked:" in shown
    assert "check_embedding_ctx_length=False" in shown


def test_json_has_the_cells_of_tasks(capsys: Output) -> None:
    assert vendors_json("bedrock") == 0
    (vendor,) = json.loads(capsys.readouterr().out)["vendors"]
    tasks = {(each["task"], each["model"]): each for each in vendor["tasks"]}
    titan = tasks[("embeddings", "amazon.titan-embed-text-v2:0")]
    assert titan["form"] == "bedrock_titan"
    assert titan["fields"]["dimensions"] == {"class": "binding", "support": "native", "how": ""}
    assert tasks[("rerank", "cohere.rerank-v3-5:0")]["fields"]["top_n"]["support"] == "native"
