"""Key files: the positions of their entries, their size limits, and the content that they must not have."""

from pathlib import Path

import pytest

from config.load_config import Loaded, examine_file, fingerprint, load_file
from config.problem import ConfigError
from config.reading import complete_teams
from config.reading.table_files import MAX_YAML_BYTES
from config.reading.yaml_tree import MAX_NODES

A, B, C = (f"sha256:{letter * 64}" for letter in "abc")
MAIN = f"""\
version: 1
vendors: {{v: {{}}}}
models: {{v/m: {{}}, v/n: {{}}}}
teams:
  t:
    keys: ["{A}"]
    keys_from: keys.yaml
    models: [v/m]
"""


def load(folder: Path, keys: str | bytes | None, main: str = MAIN) -> Loaded:
    (folder / "table.yaml").write_text(main, encoding="utf-8")
    if keys is not None:
        (folder / "keys.yaml").write_bytes(keys if isinstance(keys, bytes) else keys.encode())
    return load_file(folder / "table.yaml", {"FOLDER": str(folder), "SECRET": "canary"})


def complaints(folder: Path, keys: str | bytes | None, main: str = MAIN) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(folder, keys, main)
    return [str(problem).replace(f"{folder}/", "") for problem in caught.value.problems]


def labels(loaded: Loaded) -> list[str]:
    return [key.label for _, _, key in loaded.config.teams["t"].every_key()]


def test_the_keys_of_a_file_are_the_team_s(tmp_path: Path) -> None:
    loaded = load(tmp_path, f"- {B}\n- hash: {C}\n  name: ci\n  expires: 2036-01-01\n  models: [v/m]\n")
    assert labels(loaded) == ["aaaaaaaa", "bbbbbbbb", "ci"]
    position = loaded.locate(("teams", "t", "keys_from", 1, "name"))
    assert str(position) == f"{tmp_path}/keys.yaml:3:9"


def test_it_is_among_the_files_that_are_watched(tmp_path: Path) -> None:
    loaded = load(tmp_path, f"- {B}\n")
    assert loaded.files == (tmp_path / "table.yaml", tmp_path / "keys.yaml")
    assert fingerprint(loaded.sources) == loaded.sources.hashes
    (tmp_path / "keys.yaml").write_text(f"- {C}\n")
    assert fingerprint(loaded.sources) != loaded.sources.hashes
    assert load_file(tmp_path / "table.yaml", {}).digest != loaded.digest


def test_another_process_loads_the_same_keys_from_the_copies(tmp_path: Path) -> None:
    loaded = load(tmp_path, f"- {B}\n")
    (tmp_path / "keys.yaml").unlink()
    again = examine_file(tmp_path / "table.yaml", {}, loaded.copies).sound()
    assert labels(again) == labels(loaded)


@pytest.mark.parametrize("keys", ["", "# none yet\n", "---\n", "[]\n", "null\n", "\ufeff"])
def test_an_empty_file_is_an_empty_list(tmp_path: Path, keys: str) -> None:
    assert labels(load(tmp_path, keys)) == ["aaaaaaaa"]
    assert labels(load(tmp_path, keys, MAIN.replace(f'    keys: ["{A}"]\n', ""))) == []
    assert labels(load(tmp_path, keys, MAIN.replace(f'"{A}"', ""))) == []


def test_a_path_is_relative_to_the_file_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "team.yaml").write_text(MAIN[MAIN.index("teams:") :])
    (tmp_path / "more" / "keys.yaml").write_text(f"- {B}\n")
    loaded = load(tmp_path, None, MAIN[: MAIN.index("teams:")] + "include: [more/team.yaml]\n")
    assert labels(loaded) == ["aaaaaaaa", "bbbbbbbb"]


def test_the_path_may_be_a_reference_which_no_message_expands(tmp_path: Path) -> None:
    by_reference = MAIN.replace("keys.yaml", '"${FOLDER}/keys.yaml"')
    assert labels(load(tmp_path, f"- {B}\n", by_reference)) == ["aaaaaaaa", "bbbbbbbb"]
    (tmp_path / "keys.yaml").unlink()
    (told,) = complaints(tmp_path, None, by_reference)
    message = "cannot read the file ${FOLDER}/keys.yaml: No such file or directory"
    assert told == f"table.yaml:7:16 teams.t.keys_from: {message}"


def test_a_missing_file_is_told_where_it_is_named_and_watched_for(tmp_path: Path) -> None:
    assert complaints(tmp_path, None) == [
        "table.yaml:7:16 teams.t.keys_from: cannot read the file keys.yaml: No such file or directory"
    ]
    examined = examine_file(tmp_path / "table.yaml", {})
    (tmp_path / "keys.yaml").write_text("")
    assert fingerprint(examined.sources) != examined.sources.hashes


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        (f"- {B}\n- sk-canary\n", "keys.yaml:2:3 teams.t.keys_from.1: must be sha256: and 64 hex digits; `dragoman"),
        (
            f"- {B}\n- hash: {C}\n  nmae: ci\n",
            "keys.yaml:3:3 teams.t.keys_from.1.nmae: unknown key; did you mean",
        ),
        (f"- hash: {B}\n  models: [v/n]\n", "keys.yaml:2:12 teams.t.keys_from.0.models.0: the team may not request"),
        (f"- {A}\n", "keys.yaml:1:3 teams.t.keys_from.0: the same key already belongs to team t, at table.yaml:6:12"),
        (
            f"- {B}\n- {B}\n",
            "keys.yaml:2:3 teams.t.keys_from.1: the same key already belongs to team t, at keys",
        ),
        (f"- hash: {B}\n  hash: {C}\n", "keys.yaml:2:3 teams.t.keys_from.0.hash: key written twice; first at"),
        (
            f"- {B}\n- name: ${{SECRET}}\n",
            "keys.yaml:2:9 teams.t.keys_from.1.name: a file of keys may not hold references",
        ),
        ("- ${file:/etc/passwd}\n", "keys.yaml:1:3 teams.t.keys_from.0: a file of keys may not hold references"),
        ("canary: {password: canary}\n", "keys.yaml:1:1 teams.t.keys_from: a file of keys is a list: a digest or a"),
        (f"{B}\n", "keys.yaml:1:1 teams.t.keys_from: a file of keys is a list"),
        ("canary: [\n", "keys.yaml:2:1 "),
        ("- a\n--- \n- b\n", "keys.yaml:2:1 teams.t.keys_from: a second document (---) starts here"),
        ("- &a [*a]\n", "keys.yaml:1:7 teams.t.keys_from: this alias (*) stands inside its own anchor"),
        (b"- \xff\n", "table.yaml:7:16 teams.t.keys_from: cannot read the file keys.yaml: not UTF-8: bad byte at"),
    ],
)
def test_a_mistake_is_told_at_its_place_and_shows_nothing_else(tmp_path: Path, keys: str | bytes, told: str) -> None:
    found = complaints(tmp_path, keys)
    assert found[0][: len(told)] == told
    assert "canary" not in " ".join(found)


@pytest.mark.parametrize("keys_from", ["5", "[a.yaml]", "", "''", '"a\\nb"', "{}"])
def test_what_is_no_path_is_refused(tmp_path: Path, keys_from: str) -> None:
    (told,) = complaints(tmp_path, "", MAIN.replace("keys.yaml", keys_from))
    assert told.endswith("teams.t.keys_from: expected a path")


def test_a_variable_that_is_not_set_is_told_once(tmp_path: Path) -> None:
    told = complaints(tmp_path, "", MAIN.replace("keys.yaml", "${NOT_SET}"))
    assert told == ["table.yaml:7:16 teams.t.keys_from: the environment variable NOT_SET is not set"]


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    (told,) = complaints(tmp_path, b"#" * (MAX_YAML_BYTES + 1))
    assert told.endswith("cannot read the file keys.yaml: larger than 1024 KiB")


def test_an_alias_bomb_costs_nothing(tmp_path: Path) -> None:
    lines = ["- &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"- &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    (told,) = complaints(tmp_path, "\n".join(lines))
    assert f"more than {MAX_NODES} values, with every alias written out" in told


def test_brackets_without_end_cost_nothing(tmp_path: Path) -> None:
    (told,) = complaints(tmp_path, "[" * 500_000)
    assert "nested deeper than 40 levels" in told


def test_as_many_keys_as_a_file_may_have_are_read(tmp_path: Path) -> None:
    digests = [f"sha256:{number:064x}" for number in range(13_000)]
    loaded = load(tmp_path, "".join(f"- {digest}\n" for digest in digests))
    assert [key.digest for key in loaded.config.teams["t"].keys_from] == digests


def test_the_number_of_files_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(complete_teams, "_MOST_FILES", 1)
    main = f"{MAIN}  u: {{keys: ['{B}'], keys_from: keys.yaml, models: ['*']}}\n"
    (told,) = complaints(tmp_path, f"- {C}\n", main)
    assert told.startswith("table.yaml:9:")
    assert told.endswith("teams.u.keys_from: more than 1 files of keys")


def test_a_table_without_teams_stays_as_it_is(tmp_path: Path) -> None:
    for teams in ("", "teams: {}\n", "teams: [a]\n", "teams: {t: [a]}\n"):
        (tmp_path / "table.yaml").write_text(MAIN[: MAIN.index("teams:")] + teams)
        told = examine_file(tmp_path / "table.yaml", {}).problems
        assert len(told) == ("[a]" in teams)
