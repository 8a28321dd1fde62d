"""The matrix in the overview of vendors."""

import re

import pytest

from providers.capabilities import FEATURES
from providers.dialects.capability_matrix import matrix_entries, summarize
from providers.profiles.load_profiles import load_profiles
from providers.unified_request import Operation
from tests.docs.matrix_page import BEGIN, END, PAGE, reference, updated


def table(heading: str) -> dict[str, list[str]]:
    """The cells of a section, by feature."""
    section = reference().partition(f"\n### {heading}\n")[2].partition("\n### ")[0]
    found = re.findall(r"^\| `(.+?)` \| (.*) \|$", section, re.MULTILINE)
    return {name: [cell.strip() for cell in cells.split("|")] for name, cells in found}


def test_the_page_holds_the_generated_matrix() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == updated(text), "run `make generate`"


def test_the_sizes_come_first() -> None:
    assert reference().startswith(f"{summarize(matrix_entries(load_profiles().values()))}.\n")


@pytest.mark.parametrize(
    ("heading", "operation"), [("Completions", Operation.COMPLETIONS), ("Chat completions", Operation.CHAT)]
)
def test_every_feature_has_a_line_that_covers_every_vendor(heading: str, operation: Operation) -> None:
    found = table(heading)
    assert list(found) == [name for name, feature in FEATURES.items() if operation in feature.operations]
    assert {cells.count("the others") + cells.count("everywhere") for cells in found.values()} == {1}


def test_a_line_says_where_a_feature_is_what() -> None:
    completions, chat = table("Completions"), table("Chat completions")
    assert completions["max_tokens"] == ["binding", "everywhere", "", "", ""]
    assert completions["echo_last"] == ["steering", "fireworks", "", "", "the others"]
    assert chat["prediction"][0] == "advisory"
    assert chat["prediction"][-2:] == ["the others", ""]
    native, emulated, left_out, refused = completions["prompt.tokens"][1:]
    assert native.startswith("openai (gpt-3.5-turbo-instruct, davinci-002), ")
    assert (emulated, left_out, refused) == ("", "", "the others")


def test_models_without_an_endpoint_are_named_once() -> None:
    assert reference().count("Not with openai (gpt-3.5-turbo-instruct, davinci-002), ") == 1
    assert "turbo-instruct" not in str(table("Chat completions"))


def test_only_what_is_between_the_marks_changes() -> None:
    text = updated(f"before {BEGIN} stale words {END} after")
    assert text.startswith(f"before {BEGIN}\n")
    assert text.endswith(f"\n{END} after")
    assert "stale words" not in text


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="mark"):
        updated(f"no {BEGIN}")
