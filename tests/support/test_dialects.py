"""Fixtures are found by name, and every dialect has its fake server."""

from providers.dialects.registry import DIALECTS
from tests.support.dialects import FOLDER, NAMES, declared, fixture_name, fixture_path


def test_a_fixture_has_one_name_and_one_path() -> None:
    path = fixture_path("cohere/errors/error_401.json")
    assert path == FOLDER / "cohere" / "fixtures" / "errors" / "error_401.json"
    assert fixture_name(path) == "cohere/errors/error_401.json"


def test_every_dialect_has_a_fake_server() -> None:
    assert declared("*fake_server.py", "FAKE_DIALECTS").keys() == DIALECTS.keys()


def test_every_folder_belongs_to_a_dialect_or_to_a_part_of_one() -> None:
    assert set(NAMES) <= {*DIALECTS, "responses"}
