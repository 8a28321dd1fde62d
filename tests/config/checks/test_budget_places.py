"""The scopes of a config file that have budgets, and the names that their requests may use."""

from config.checks.budget_places import budget_scopes
from tests.config.tables import BASE, load

TABLE = f"""
budget: {{usd: 9, per: day}}
teams:
  t:
    keys:
      - {{hash: 'sha256:{"a" * 64}', models: [own], budget: {{usd: 1, per: day}}}}
      - {{hash: 'sha256:{"b" * 64}', budget: [{{usd: 2, per: day}}, {{usd: 3, per: week}}]}}
      - {{hash: 'sha256:{"c" * 64}'}}
    models: [openai/*]
    routes: {{own: openai/gpt-4o, more: openai/gpt-4o}}
  without: {{keys: ['sha256:{"d" * 64}'], models: ['*']}}
"""


def test_each_scope_with_budgets_is_a_place_with_its_names() -> None:
    found = {".".join(map(str, each.path)): each for each in budget_scopes(load(BASE + TABLE).config)}
    assert {path: (each.who, each.names, [*each.routes], len(each.budgets)) for path, each in found.items()} == {
        "budget": ("a client", ("*",), [], 1),
        "teams.t.keys.0.budget": ("this key", ("own",), ["own"], 1),
        "teams.t.keys.1.budget": ("this key", ("openai/*",), ["own", "more"], 2),
    }


def test_wider_budgets_are_around() -> None:
    *_, key = budget_scopes(load(BASE + TABLE).config)
    assert [path for path, _ in key.around] == [("teams", "t", "budget"), ("budget",)]


def test_users_have_places_of_their_own() -> None:
    each = "each_user: {budget: {usd: 1, per: day}}"
    text = BASE + TABLE.replace("    models: [openai/*]\n", f"    models: [openai/*]\n    {each}\n") + f"{each}\n"
    found = {".".join(map(str, place.path)): place for place in budget_scopes(load(text).config)}
    assert [path for path, _ in found["each_user.budget"].around] == [("budget",)]
    of_team = found["teams.t.each_user.budget"]
    assert (of_team.names, [*of_team.routes], len(of_team.around)) == (("openai/*",), ["own", "more"], 2)
