"""The last hour in `/status`."""

import orjson

from proxy.admin.last_hour.hour_figures import NO_HOUR, HourFigures, Spent
from proxy.admin.last_hour.hour_json import MOST_NAMES, hour_json
from tests.proxy.admin.last_hour.kit import NEWEST, hour


def test_scripts_get_each_minute_and_each_spender_by_name() -> None:
    found = orjson.loads(orjson.dumps(hour_json(hour())))
    first = found["minutes"][0]
    assert first["start"] == "2026-09-21T13:43:00.000Z"
    assert (first["outcomes"]["ok"], first["outcomes"]["limited"]) == (4, 1)
    assert (first["prompt_tokens"], first["cached_tokens"]) == (1000, 250)
    assert 0 < first["first_token_p50_s"] <= first["first_token_p95_s"] < first["duration_p95_s"]
    search, ads = found["teams"]
    assert search["minutes"][1] == {"start": "2026-09-21T14:13:00.000Z", "cost_usd": 1.25, "tokens": 3000}
    del search["minutes"], ads["minutes"]
    facts = {"cost_usd": 1.75, "tokens": 5000, "requests": 10, "requests_of_unknown_cost": 2}
    assert search == {"name": "search", **facts}
    assert found["keys"][0] == {"name": "search/ci", **facts}
    assert [each["name"] for each in found["models"]] == ["v/m"]


def test_a_cost_of_which_nothing_is_known_is_null() -> None:
    unpriced = Spent(3, 30, 0.0, 3)
    found = orjson.loads(
        orjson.dumps(hour_json(HourFigures(NEWEST, (), {"t": {NEWEST: unpriced}}, {"t/k": unpriced}, {"m": Spent(1)})))
    )
    (team,), (key,), (model,) = found["teams"], found["keys"], found["models"]
    assert [team["cost_usd"], team["minutes"][0]["cost_usd"], key["cost_usd"]] == [None] * 3
    assert model["cost_usd"] == 0.0


def test_an_hour_without_requests_is_empty_lists() -> None:
    assert hour_json(NO_HOUR) == {"minutes": [], "teams": [], "keys": [], "models": []}


def test_spenders_beyond_the_most_are_one_entry() -> None:
    many = {f"v/{number:02}": Spent(1, 1, float(number)) for number in range(40)}
    found = hour_json(HourFigures(NEWEST, (), {name: {NEWEST: spent} for name, spent in many.items()}, many, many))
    for kind in ("teams", "keys", "models"):
        entries = found[kind]
        assert isinstance(entries, list)
        assert len(entries) == MOST_NAMES + 1
        assert (entries[-1]["name"], entries[-1]["requests"]) == ("other", 20)
