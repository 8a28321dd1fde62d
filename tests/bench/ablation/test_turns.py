"""The savings of a mechanism, calculated from made-up turns."""

from math import nan

from tests.bench.ablation.mechanisms import BY_NAME
from tests.bench.ablation.turns import HEAD, Turns, Worth, ablation_table, chosen, groups, worth_of

HEADS = BY_NAME["kept_heads"]


def test_a_worth_is_the_share_in_the_middle_of_the_turns() -> None:
    whole = Turns({"request": [90, 50, 80], "chunk": [1, 1, 1], "agent": [nan, nan, nan]})
    without = Turns({"request": [100, 100, 100], "chunk": [1, 1, 1], "agent": [9, 9, 9]})
    found = worth_of(HEADS, without, whole)
    assert (round(found.saved["request"], 3), found.saved["chunk"]) == (0.2, 0)
    assert "agent" not in found.saved
    assert found.verdict == "keep"


def test_what_saves_little_is_removed_unless_it_stays() -> None:
    assert Worth(HEADS, {"request": 0.05}).verdict == "remove"
    assert Worth(BY_NAME["eager"], {"request": 0.05}).verdict.startswith("keep: ")
    assert Worth(BY_NAME["protobuf"], {}).verdict.startswith("not measured: ")
    assert Worth(HEADS, {}, "HTTP/1.1 503").verdict == "no result: HTTP/1.1 503"


def test_each_mechanism_is_in_one_group_those_over_tls_by_themselves() -> None:
    found = chosen(())
    grouped = [each for group in groups(found) for each in group]
    assert sorted(each.name for each in grouped) == sorted(each.name for each in found if each.patches)
    assert all(len({each.tls for each in group}) == 1 for group in groups(found))


def test_the_table_has_a_row_for_each() -> None:
    lines = ablation_table([Worth(HEADS, {"request": 0.25})])
    assert [cell.strip() for cell in lines[0].strip("|").split("|")] == list(HEAD)
    assert "25.0%" in lines[2]
