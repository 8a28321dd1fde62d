"""Single budgets: the checks always see a list, and problems have the path of the mapping in the file."""

from config.reading.lone_budgets import LoneBudgets
from config.reading.yaml_tree import MapNode, parse
from tests.config.tables import BASE, load, problems
from tests.support.looped import looped

KEY = f"sha256:{'a' * 64}"
KEYS = f"[{{{{hash: '{KEY}', budget: {{0}}}}}}]"
TEAM = f"teams: {{{{t: {{{{keys: {KEYS}, models: [openai/*], budget: {{0}}}}}}}}}}\nbudget: {{0}}\n"
MODEL = "models: {{v/m: {{budget: {0}, deployments: {{a: {{budget: {0}}}}}}}}}\n"
TARGETS = f"{TEAM}vendors: {{{{v: {{{{budget: {{0}}}}}}}}}}\n{MODEL}"
TARGETS = TARGETS.replace("models: [openai/*],", "models: [openai/*], each_user: {{budget: {0}}},")
TARGETS += "each_user: {{budget: {0}}}\n"

PLACES = (
    *("budget", "teams.t.budget", "teams.t.keys.0.budget", "each_user.budget", "teams.t.each_user.budget"),
    *("vendors.v.budget", "models.v/m.budget", "models.v/m.deployments.a.budget"),
)


@looped(
    ("budget", "path"),
    [("{usd: 0, per: day}", ".usd"), ("[{usd: 0, per: day}]", ".0.usd"), ("{per: day}", ""), ("[{per: day}]", ".0")],
)
def test_problems_have_the_path_of_the_file(budget: str, path: str) -> None:
    found = [each.path for each in problems("version: 1\n" + TARGETS.format(budget).replace("openai", "v"))]
    assert sorted(found) == sorted(f"{place}{path}" for place in PLACES)


def test_each_is_a_list_of_one() -> None:
    config = load(BASE + TEAM.format("{usd: 5, per: day}")).config
    team = config.teams["t"]
    assert [len(each) for each in (config.budget, team.budget, team.keys[0].budget)] == [1, 1, 1]


def test_a_table_without_lone_budgets_is_the_same_tree() -> None:
    root = parse(BASE + TEAM.format("[{usd: 5, per: day}]"), "table.yaml").root
    assert isinstance(root, MapNode)
    assert LoneBudgets().listed(root) is root
