"""The addresses of Vertex AI."""

from providers.dialects.platforms.vertex_address import resolve_host
from tests.support.looped import looped

PATH = "/v1/projects/p/locations/global"


@looped(
    ("template", "host"),
    [
        ("https://global-aiplatform.googleapis.com", "https://aiplatform.googleapis.com"),
        ("https://us-aiplatform.googleapis.com", "https://aiplatform.us.rep.googleapis.com"),
        ("https://eu-aiplatform.googleapis.com", "https://aiplatform.eu.rep.googleapis.com"),
        ("https://us-east5-aiplatform.googleapis.com", "https://us-east5-aiplatform.googleapis.com"),
        ("https://aiplatform.googleapis.com", "https://aiplatform.googleapis.com"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        (
            "https://global-aiplatform.googleapis.com.example.org",
            "https://global-aiplatform.googleapis.com.example.org",
        ),
    ],
)
def test_locations_that_are_no_regions_have_hosts_of_their_own(template: str, host: str) -> None:
    assert resolve_host(template + PATH) == host + PATH
    assert resolve_host(template) == host
