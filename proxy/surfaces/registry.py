"""Every surface there is. Never decides what a path below a surface means."""

from proxy.surfaces.fim import FIM
from proxy.surfaces.fireworks import FIREWORKS
from proxy.surfaces.openai import OPENAI
from proxy.surfaces.pais import PAIS
from proxy.surfaces.scale import SCALE_V4, SCALE_V5
from proxy.surfaces.surface import Surface

SURFACES: tuple[Surface, ...] = (OPENAI, FIM, SCALE_V4, SCALE_V5, FIREWORKS, PAIS)

_PREFIXES: tuple[tuple[str, Surface], ...] = tuple(
    sorted(
        ((prefix, surface) for surface in SURFACES for prefix in surface.prefixes),
        key=lambda pair: -len(pair[0]),
    )
)


def surface_for_path(path: str) -> Surface:
    """The surface whose errors a path wears: that of the longest prefix of whole segments, else OpenAI's."""
    for prefix, surface in _PREFIXES:
        if path == prefix or path.startswith(prefix + "/"):
            return surface
    return OPENAI
