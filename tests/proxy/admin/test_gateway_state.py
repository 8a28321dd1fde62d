"""A gateway is well if a restart would work and no name fails; otherwise each reason is named."""

from dataclasses import replace

from proxy.admin.gateway_state import GatewayState, Level, gateway_state
from proxy.admin.recent_requests import NO_USES
from proxy.admin.reload_history import PastReload
from proxy.admin.route_states import health_of, route_rows
from proxy.admin.status import DeploymentState, ProcessStatus
from tests.proxy.admin.kit import NOW, RELOADS, status, view
from tests.support.looped import looped

WELL = replace(status(), states={}, limited={}, recent=NO_USES)
EVERY = ("mock/echo/default", "v/m/a", "v/m/b", "v/m/c", "v/m/d")


def state_of(now: ProcessStatus, reloads: tuple[PastReload, ...] = ()) -> GatewayState:
    made = view(status=now)
    health = {target.label: health_of(now, target) for target in made.snapshot.targets()}
    return gateway_state(made, health, route_rows(made.snapshot, now), reloads)


def test_a_gateway_without_trouble_is_well() -> None:
    for reloads in ((), RELOADS[1:]):
        assert state_of(WELL, reloads) == GatewayState(Level.WELL, [], [], ())


def test_a_refused_config_file_is_trouble_until_a_reload_takes_one() -> None:
    refused = state_of(WELL, RELOADS)
    assert (refused.level, refused.reasons) == (
        Level.TROUBLED,
        ["the config file on disk is refused: a restart would fail"],
    )
    assert refused.refused == ("t.yaml:2:3 models: no vendor named v",)
    assert state_of(WELL, (PastReload(NOW, "abc"), *RELOADS)).level is Level.WELL


@looped("state", [*DeploymentState])
def test_a_name_without_a_target_that_is_up_is_trouble(state: DeploymentState) -> None:
    found = state_of(replace(WELL, states=dict.fromkeys(EVERY, state)))
    assert found.level is Level.TROUBLED
    assert found.failing == ["fast", "mock/echo", "v/m"]
    assert found.reasons == ["no target is up of fast, mock/echo, v/m", "5 of 5 deployments not up"]


def test_a_gateway_that_takes_no_requests_says_what_else_is_wrong() -> None:
    found = state_of(replace(WELL, ready=False), RELOADS)
    assert found.level is Level.NOT_READY
    assert [reason.partition(":")[0] for reason in found.reasons] == [
        "it takes no requests now",
        "the config file on disk is refused",
    ]
