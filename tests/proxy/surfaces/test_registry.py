"""The surface of a path, and that the configuration knows every surface."""

from collections import Counter
from typing import get_args

from config.sections.server_section import SurfaceName
from providers.failure import Failure, FailureKind
from proxy.errors import upstream_failed
from proxy.surfaces.anthropic.surface import ANTHROPIC
from proxy.surfaces.mistral_fim import FIM
from proxy.surfaces.registry import SURFACES, error_headers, surface_for_path
from proxy.surfaces.responses.responses_surface import RESPONSES
from tests.proxy.surfaces.kit import ROWS
from tests.support.looped import looped


@looped(
    ("path", "name"),
    [
        ("/v1/completions", "openai"),
        ("/v1", "openai"),
        ("/completions", "openai"),
        ("/", "openai"),
        ("/v1beta/x", "openai"),
        ("/v4/beta/completions", "scale_v4"),
        ("/v4/models", "scale_v4"),
        ("/v5/nothing", "scale_v5"),
        ("/inference/v1/v1/completions", "fireworks"),
        ("/inference", "fireworks"),
        ("/inferences/v1", "openai"),
        ("/api/v1/compatibility/openai/v1/models", "pais"),
        ("/api/v1/compatibility/openai", "pais"),
        ("/api/v1/other", "openai"),
    ],
)
def test_a_path_wears_the_errors_of_its_longest_prefix(path: str, name: str) -> None:
    assert surface_for_path(path) is ROWS[name]


def test_every_row_is_served_and_the_table_may_have_settings_for_every_surface_and_no_other() -> None:
    assert set(map(id, SURFACES)) == {*map(id, ROWS.values()), id(FIM), id(ANTHROPIC), id(RESPONSES)}
    assert {surface.name for surface in SURFACES} == set(get_args(SurfaceName))


def test_no_two_surfaces_claim_one_endpoint_and_each_wears_the_errors_of_its_own() -> None:
    claims = Counter((endpoint.method, endpoint.path) for surface in SURFACES for endpoint in surface.endpoints)
    assert claims.most_common(1)[0][1] == 1
    for surface in SURFACES:
        for endpoint in surface.endpoints:
            assert surface_for_path(endpoint.path) is surface


@looped(
    ("kind", "agents", "others"),
    [
        (FailureKind.RATE_LIMITED, None, "false"),
        (FailureKind.OVERLOADED, None, "false"),
        (FailureKind.QUOTA, "false", "false"),
        (FailureKind.AUTH, "false", "false"),
    ],
)
def test_agents_go_on_while_a_vendor_has_too_much(kind: FailureKind, agents: str | None, others: str | None) -> None:
    facts = upstream_failed(Failure(kind, "no"), attempts=2).facts
    assert error_headers(ANTHROPIC, facts).get("x-should-retry") == agents
    assert error_headers(ROWS["openai"], facts).get("x-should-retry") == others
