"""Plugin names in the lists of teams."""

import pytest

from config.load_config import load_text
from config.problem import ConfigError

TABLE = """version: 1
vendors: {{mock: {{}}}}
models: {{mock/echo: {{}}}}
plugins: {{redact: {{use: "a:B"}}}}
teams: {{t: {{keys: ["sha256:{0}"], models: ["*"], plugins: [{1}]}}}}
"""


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ("redcat", "t:5:121 teams.t.plugins.0: no plugin named redcat; did you mean redact?"),
        ("redact, redact", "t:5:129 teams.t.plugins.1: this plugin is listed twice"),
    ],
)
def test_an_unknown_or_repeated_name_is_told(names: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_text(TABLE.format("0" * 64, names), "t", {})
    assert str(caught.value) == said


def test_a_known_name_is_right() -> None:
    assert load_text(TABLE.format("0" * 64, "redact"), "t", {}).config.teams["t"].plugins == ["redact"]
