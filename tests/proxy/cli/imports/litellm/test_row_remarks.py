"""Fields of keys and teams that are no settings get one remark for all rows that have them."""

from pathlib import Path

from proxy.cli.imports.litellm.reasons import TAGS, reason_in
from proxy.cli.imports.litellm.row_remarks import is_blank
from tests.proxy.cli.imports.kit import section
from tests.proxy.cli.imports.litellm.kit import rows


def test_one_remark_names_all_keys_of_a_reason(tmp_path: Path) -> None:
    keys = [{"team_id": None, "user_id": "u", "metadata": {"cost": "sk-canary", "tags": ["x"]}} for _ in range(3)]
    made = rows(tmp_path, keys)
    told = [str(problem).partition(" keys: ")[2] for problem in made.losses if problem.path == "keys"]
    assert len([line for line in told if line.startswith("user_id: ")]) == 1
    assert any(line.startswith("metadata.tags: ") and line.endswith("(k0, k1, k2)") for line in told)
    assert any(line.startswith("metadata.cost: ") and "teams.NAME.tags" in line for line in told)
    assert "canary" not in made.text + "".join(told)


def test_what_says_nothing_is_not_told(tmp_path: Path) -> None:
    node = section("a: {b: null, c: [], d: '', e: false, f: 0}\ng: {h: x}\n").node.entries
    assert is_blank(node["a"].node)
    assert not is_blank(node["g"].node)
    made = rows(tmp_path, [{"team_id": None, "permissions": {}, "spend": 0.0, "object_permission": None}])
    assert [problem.path for problem in made.losses if "permission" in problem.message] == []


def test_a_budget_that_the_export_does_not_have_and_a_soft_one_in_notes_are_lost_in_words(tmp_path: Path) -> None:
    made = rows(tmp_path, [{"team_id": None, "budget_id": "b-1", "metadata": {"soft_budget": 5}}])
    told = {problem.message.partition(":")[0]: problem for problem in made.losses if problem.path == "keys"}
    assert "its amounts and limits are lost" in told["budget_id"].message
    assert "then: warn" in told["metadata.soft_budget"].message
    assert {told["budget_id"], told["metadata.soft_budget"]} <= made.remarks.settings


def test_a_tag_has_one_reason_wherever_it_stands(tmp_path: Path) -> None:
    tagged = {"metadata": {"tags": ["x"]}}
    made = rows(tmp_path, [{"team_id": None, **tagged}], [{"team_id": "t", **tagged}])
    told = [problem.message for problem in made.losses if problem.message.startswith("metadata.tags: ")]
    assert [each.startswith(f"metadata.tags: {TAGS.text} (") for each in told] == [True, True]
    assert {reason_in(section)("tags") for section in ("litellm_params", "model_info")} == {TAGS}
    assert reason_in("router_settings")("enable_tag_filtering") == TAGS
