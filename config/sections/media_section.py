"""The `media` section of deployments and teams: which addresses of media may be sent."""

from config.sections.section import Section, setting
from config.sections.value_types import OptionalSwitch, Scheme


class MediaSection(Section):
    """Which addresses of images, sounds, videos and files may be sent. Each setting is inherited by itself."""

    schemes: list[Scheme] | None = setting(
        "Schemes of addresses that are allowed, such as http, gs or s3, which a vendor may read under the "
        "identity of its key. The list replaces the list of the level above.",
        built_in=["https", "data"],
        resolved=False,
    )
    allow_private: OptionalSwitch = setting(
        "Whether addresses inside its own network may be sent to an engine, which fetches addresses itself: "
        "loopback and private IP addresses, names without a dot or ending in .internal, .local or .svc. Addresses "
        "of metadata services are never sent.",
        built_in=False,
        resolved=False,
    )
