"""The prices behind names, over routes, deployments and allow lists."""

from config.checks.asked_prices import AskedPrices, PriceBook
from tests.config.tables import load
from tests.support.looped import looped

TABLE = load(
    f"""\
    version: 1
    vendors: {{v: {{price: {{input: 1, output: 2}}}}, w: {{}}}}
    models:
      v/cheap: {{price: {{input: 0.1}}}}
      v/usual: {{}}
      v/mixed: {{deployments: {{a: {{price: {{input: 5, output: 5}}}}, b: {{}}}}}}
      w/none: {{}}
      w/some: {{deployments: {{a: {{price: {{input: 9, output: 9}}}}, b: {{}}}}}}
      w/*: {{price: {{input: 7}}}}
    routes:
      one: v/usual
      two: [w/none, one]
    teams:
      t: {{keys: ['sha256:{"a" * 64}'], models: [v/cheap], routes: {{one: w/none, three: {{targets: [one, v/cheap]}}}}}}
      u: {{keys: ['sha256:{"b" * 64}'], models: [v/*, one]}}
      all: {{keys: ['sha256:{"c" * 64}'], models: ['*']}}
    """.replace("two: [w/none, one]", "two: {targets: [w/none, one]}")
).config


@looped(
    ("name", "unpriced", "lowest", "highest"),
    [
        ("v/cheap", set(), 0.1, 0.1),
        ("v/usual", set(), 3, 3),
        ("v/mixed", set(), 3, 10),
        ("v/mixed/a", set(), 10, 10),
        ("w/none", {"w/none"}, None, None),
        ("w/some", {"w/some"}, 18, 18),
        ("w/some/b", {"w/some"}, None, None),
        ("w/any/other", set(), 7, 7),
        ("one", set(), 3, 3),
        ("two", {"w/none"}, 3, 3),
        ("v/unknown", set(), None, None),
    ],
)
def test_a_name_costs_what_its_deployments_cost(
    name: str, unpriced: set[str], lowest: float | None, highest: float | None
) -> None:
    assert PriceBook(TABLE).of_name(name, {}) == AskedPrices(frozenset(unpriced), highest, lowest)


def test_a_team_s_own_routes_come_first() -> None:
    book, own = PriceBook(TABLE), TABLE.teams["t"].routes
    assert book.of_name("one", own) == AskedPrices(frozenset({"w/none"}))
    assert book.of_name("three", own) == AskedPrices(frozenset({"w/none"}), 0.1, 0.1)
    assert book.of_names(tuple(TABLE.teams["t"].models), own) == AskedPrices(frozenset({"w/none"}), 0.1, 0.1)


def test_a_list_costs_what_all_its_names_cost() -> None:
    book = PriceBook(TABLE)
    assert book.of_names(("v/*", "one"), {}) == AskedPrices(frozenset(), 10, 0.1)
    assert book.of_names(("*",), {}) == AskedPrices(frozenset({"w/none", "w/some"}), 18, 0.1)
    assert book.of_names(("*",), {}) is not book.of_names(("v/*", "one"), {})


def test_a_long_chain_and_a_circle_of_routes_end() -> None:
    links = "".join(f"  r{number}: r{number + 1}\n" for number in range(3000))
    config = load(
        f"version: 1\nvendors: {{v: {{price: {{input: 1}}}}}}\nmodels: {{v/m: {{}}}}\nroutes:\n{links}  r3000: v/m\n"
    ).config
    assert PriceBook(config).of_name("r0", {}).highest == 1
    assert PriceBook(config).of_name("r0", {"r9": config.routes["r5"]}).highest is None
