"""The hosts of Vertex AI by location.

Source: "Locations" page of Vertex AI and `google-genai` 3.4.0 `_api_client.py`, November 2026.
"""

import re
from functools import lru_cache

_REGIONAL = re.compile(r"^https://(global|us|eu)-aiplatform\.googleapis\.com(?=/|$)")
_HOSTS = {
    "global": "aiplatform.googleapis.com",
    "us": "aiplatform.us.rep.googleapis.com",
    "eu": "aiplatform.eu.rep.googleapis.com",
}


@lru_cache(maxsize=1024)
def resolve_host(base_url: str) -> str:
    """Return the base URL with the host of its location. The hosts of `global`, `us` and `eu` have forms of their
    own."""
    return _REGIONAL.sub(lambda found: f"https://{_HOSTS[found[1]]}", base_url)
