"""The last reloads are recorded: the changes of successful ones, and the errors of failed ones."""

from config.problem import Problem
from proxy.admin.reload_history import MOST_PROBLEMS, MOST_RELOADS, PastReload, ReloadHistory
from tests.proxy.kit.tables import loaded

ONE = loaded("vendors: {mock: {}}\nmodels: {mock/one: {}}\n").config
TWO = loaded("vendors: {mock: {}}\nmodels: {mock/one: {}, mock/two: {}}\n").config


def history() -> ReloadHistory:
    times = iter(range(1000))
    return ReloadHistory(lambda: float(next(times)))


def test_a_good_and_a_bad_table_are_kept_newest_first() -> None:
    kept = history()
    kept.taken(ONE, TWO, "d2")
    kept.refused("d2", [Problem("t.yaml", 2, 3, "models", "wrong")] * 2)
    bad, good = kept.newest
    assert good == PastReload(0.0, "d2", ("model mock/two added",))
    assert bad == PastReload(1.0, "d2", (), ("t.yaml:2:3 models: wrong",) * 2)
    assert (good.result, bad.result) == ("taken", "refused")


def test_no_more_are_kept_than_a_page_shows() -> None:
    kept = history()
    for _ in range(MOST_RELOADS + 5):
        kept.refused("d", [Problem("t.yaml", 2, 3, "models", "wrong")] * 500)
    assert len(kept.newest) == MOST_RELOADS
    assert kept.newest[0].when == MOST_RELOADS + 4
    assert len(kept.newest[0].problems) == MOST_PROBLEMS
