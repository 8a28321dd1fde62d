"""The short rules equal the shipped rules except for their times."""

import re
from pathlib import Path

import yaml

from tests.observe.promtool import promtool
from tests.observe.shipped import RULES
from tests.observe.short_rules import shortened, shortened_duration
from tests.support.looped import looped


@looped(("text", "short"), [("1h", "60s"), ("5m", "5s"), ("3d", "4320s"), ("30s", "1s")])
def test_a_time_is_divided_and_never_nothing(text: str, short: str) -> None:
    assert shortened_duration(text) == short


def without_times(expression: str) -> str:
    return re.sub(r"\[\w+\]|offset \w+", "", expression)


def test_nothing_but_times_is_another() -> None:
    text = RULES.read_text(encoding="utf-8")
    long, short = (
        [rule for group in yaml.safe_load(each)["groups"] for rule in group["rules"]]
        for each in (text, shortened(text))
    )
    assert len(long) == len(short)
    for one, other in zip(long, short, strict=True):
        assert without_times(one["expr"]) == without_times(other["expr"])
        assert {**one, "expr": "", "for": ""} == {**other, "expr": "", "for": ""}
    assert "[5s]" in shortened(text)
    assert not re.search(r"\[\d+[mhd]\]", shortened(text))


def test_promtool_takes_them(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(shortened(RULES.read_text(encoding="utf-8")), encoding="utf-8")
    done = promtool("check", "rules", str(tmp_path / "rules.yaml"))
    assert done.returncode == 0, done.stdout.decode()
