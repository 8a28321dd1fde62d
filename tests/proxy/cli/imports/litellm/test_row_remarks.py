"""Fields of keys and teams that are no settings: told once for all that have them."""

from pathlib import Path

from proxy.cli.imports.litellm.row_remarks import is_blank
from tests.proxy.cli.imports.kit import section
from tests.proxy.cli.imports.litellm.kit import rows


def test_one_remark_names_all_keys_of_a_reason(tmp_path: Path) -> None:
    keys = [{"team_id": None, "user_id": "u", "metadata": {"cost": "sk-canary", "tags": ["x"]}} for _ in range(3)]
    made = rows(tmp_path, keys)
    told = [str(problem).partition(" keys: ")[2] for problem in made.losses if problem.path == "keys"]
    assert len([line for line in told if line.startswith("user_id: ")]) == 1
    assert any(line.startswith("metadata.tags: ") and line.endswith("(k0, k1, k2)") for line in told)
    assert any(line.startswith("metadata.cost: ") for line in told)
    assert "canary" not in made.text + "".join(told)


def test_what_says_nothing_is_not_told(tmp_path: Path) -> None:
    node = section("a: {b: null, c: [], d: '', e: false, f: 0}\ng: {h: x}\n").node.entries
    assert is_blank(node["a"].node)
    assert not is_blank(node["g"].node)
    made = rows(tmp_path, [{"team_id": None, "permissions": {}, "spend": 0.0, "object_permission": None}])
    assert [problem.path for problem in made.losses if "permission" in problem.message] == []
