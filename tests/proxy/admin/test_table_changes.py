"""The differences between two configurations are listed by name, without values."""

from config.table.table_schema import GatewayConfig
from proxy.admin.reload_history import MOST_CHANGES, config_changes
from tests.proxy.kit.tables import digest_of, loaded

BEFORE = """\
vendors: {mock: {}, v: {profile: openai_compatible, base_url: "https://v.example/v1", api_key: "sk-first-secret"}}
models: {mock/one: {}, v/m: {weight: 1, deployments: {a: {}}}}
routes: {fast: mock/one}
"""
TEAM = f'teams: {{search: {{keys: ["{digest_of("k")}"], models: ["*"]}}}}\n'


def config(text: str) -> GatewayConfig:
    return loaded(text).config


BEFORE = BEFORE.replace("weight: 1, ", "")


def test_each_part_tells_what_came_went_and_changed() -> None:
    after = BEFORE.replace("mock/one: {}", "mock/two: {}").replace("fast: mock/one", "fast: mock/two")
    after = after.replace("sk-first-secret", "sk-second-secret") + TEAM
    after += "server: {port: 9000, stall_limit: 5s}\ndefaults: {on_unsupported: drop}\n"
    found = config_changes(config(BEFORE), config(after))
    assert found == (
        "vendor v changed: api_key",
        "model mock/two added",
        "model mock/one removed",
        "route fast changed: targets",
        "team search added",
        "server.port changed",
        "server.stall_limit changed",
        "defaults.on_unsupported changed",
    )
    assert "secret" not in str(found)


def test_the_same_table_has_not_changed() -> None:
    assert config_changes(config(BEFORE), config(BEFORE)) == ()


def test_many_changes_are_counted() -> None:
    models = "".join(f", mock/m{number}: {{}}" for number in range(MOST_CHANGES + 7))
    found = config_changes(config(BEFORE), config(BEFORE.replace("mock/one: {}", "mock/one: {}" + models)))
    assert len(found) == MOST_CHANGES + 1
    assert found[-1] == "and 7 more"


def test_a_setting_that_needs_a_restart_is_named_once_and_first() -> None:
    after = config(BEFORE.replace("mock/one: {}", "mock/one: {}, mock/new: {}"))
    told = config_changes(config(BEFORE), after, ["server.ledger"])
    assert told == ("server.ledger changed (needs a restart)", "model mock/new added")
