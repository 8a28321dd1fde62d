"""Checks the addresses of images, sounds, videos and files in a request that a deployment may receive.

The check is made before a dialect encodes the request, so it covers every wire format. Nothing is fetched or resolved.
The server that fetches an address is responsible for the target of a DNS name or a redirect.

Sources: the code with which engines load media: vLLM `multimodal/media/connector.py`, SGLang `srt/utils/common.py`
(`load_image` opens a bare path), llama.cpp `tools/server/server-common.cpp`, TGI `router/src/validation.rs` (images in
a prompt's text).
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from providers.client_extras.engine_members import path_text
from providers.client_extras.hosts_paths_and_code import Place, is_inline
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from providers.target import DEFAULT_SCHEMES, Media, Target
from providers.unified_request import ChatPrompt, TextPrompt, UnifiedRequest

_LABELS: Final = frozenset(
    {"type", "text", "refusal", "thinking", "signature", "detail", "format", "filename", "title", "context", "id"}
    | {"name", "uuid", "media_type", "mime_type", "mimeType", "description", "cache_control", "citations"}
)
"""Fields of a content part whose value is never an address."""

_ADDRESS: Final = re.compile(r"(?:^|_)(?:url|uri)$|U(?:rl|ri|RL|RI)$|^(?:path|location|image|video|audio|file)$")
"""Names of fields whose value is always an address."""

_NOISE: Final = re.compile(r"[\x00-\x20]+")
_SCHEME: Final = re.compile(r"([a-z][a-z0-9+.-]{0,31}):(//)?", re.IGNORECASE)
_AUTHORITY: Final = re.compile(
    r"[a-z]+://(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::[0-9]{0,5})?(?=[/?#]|$)", re.IGNORECASE
)
_IN_TEXT: Final = re.compile(r"!\[\]\(([^)]{0,4096})")
_FETCHED: Final = frozenset({"http", "https", "ftp", "ws", "wss"})
_METADATA: Final = frozenset(
    {"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal"}
)
_INSIDE: Final = (".internal", ".local", ".localdomain", ".svc")
"""Suffixes of host names that do not exist in public DNS."""


def check_media(request: UnifiedRequest, target: Target, media: Media) -> None:
    """Raise Refusal for the first address that may not be sent to the target. The settings in `media` are the team's
    and override the deployment's."""
    prompt, params = request.prompt, request.params
    if isinstance(prompt, ChatPrompt):
        from_text = target.profile.fetches_from_text
        harmless = (prompt.plain or prompt.without_parts) and not from_text
        for message in () if harmless else prompt.messages:
            if from_text or type(message.get("content")) is list:
                _Screen(target, media, "messages").messages(prompt.messages)
                break
    elif target.profile.fetches_from_text and isinstance(prompt, TextPrompt):
        for text in prompt.texts:
            _Screen(target, media, "prompt").text(text, "prompt")
    if "images" in params:
        screen = _Screen(target, media, "images")
        for index, address in enumerate(address for group in params["images"] for address in group):
            screen.address(address, f"images[{index}]")


class _Screen:
    """Checks one field of a request for a target. Every method raises Refusal."""

    __slots__ = ("_param", "_rule", "_target")

    def __init__(self, target: Target, media: Media, param: str) -> None:
        self._target = target
        self._rule = media.over(target.permits.media)
        self._param = param

    def messages(self, messages: Sequence[JsonObject]) -> None:
        """Check every part of every message."""
        from_text = self._target.profile.fetches_from_text
        for index, message in enumerate(messages):
            content = message.get("content")
            if type(content) is list:
                for number, part in enumerate(content):
                    if isinstance(part, dict):
                        self._part(part, index, number)
            elif from_text and isinstance(content, str):
                self.text(content, f"messages[{index}].content")

    def _part(self, part: JsonObject, message: int, number: int) -> None:
        if part.get("type") == "text":
            if self._target.profile.fetches_from_text and isinstance(text := part.get("text"), str):
                self.text(text, f"messages[{message}].content[{number}].text")
            return
        for place, address in _addresses(part):
            self.address(address, f"messages[{message}].content[{number}]{path_text(place)}")

    def text(self, text: str, where: str) -> None:
        """Check the addresses of images that the engine fetches because a text names them. Other addresses in a text
        are ignored."""
        if "![](" in text:
            for found in _IN_TEXT.finditer(text):
                if _scheme(found[1]) in _FETCHED:
                    self.address(found[1].strip(), f"{where} ![]({found[1].strip()[:64]})")

    def address(self, address: str, where: str) -> None:
        """Check one address."""
        if fault := self._fault(address):
            raise Refusal(self._param, f"'{where}' {fault}.")

    def _fault(self, address: str) -> str | None:
        """Return the reason why an address may not be sent, as the end of a sentence; `None` if the address may be
        sent."""
        target, scheme = self._target, _scheme(address)
        if scheme is None:
            if not target.is_engine or is_inline(address):
                return None
            return f"is neither a data URI nor an address with a scheme; {target.name} might take it for a file's path"
        schemes = DEFAULT_SCHEMES if self._rule.schemes is None else self._rule.schemes
        if scheme not in schemes:
            listed = ", ".join([*sorted(schemes), scheme])
            how = f"`media: {{schemes: [{listed}]}}` in the configuration would allow it"
            return f"has the scheme '{scheme}', which {target.name} is not sent; {how}"
        return self._host_fault(address.strip()) if target.is_engine and scheme in _FETCHED else None

    def _host_fault(self, address: str) -> str | None:
        name, parts = self._target.name, _AUTHORITY.match(address)
        if parts is None:
            # URL parsers disagree about the host of such an address.
            return f"has no plain host, which is what {name} needs: ASCII letters, digits, '.', '-' and a port"
        host = (parts[1] or parts[2]).rstrip(".").lower()
        reach = self._target.permits.reach(host)
        if reach == "forbidden" or host in _METADATA:
            return f"names a host that {name} may not be made to call (link-local, metadata or malformed)"
        single = "." not in host and ":" not in host
        if (reach in ("loopback", "private") or single or host.endswith(_INSIDE)) and not self._rule.allow_private:
            how = "`media: {allow_private: true}` in the configuration would allow it"
            return f"names a host inside the network of {name}, which fetches it itself; {how}"
        return None


def _addresses(part: JsonObject) -> Iterator[tuple[Place, str]]:
    """Yield every text of a part that is an address. The name of its field or the beginning of the text decides."""
    pending: list[tuple[Place, str, JsonValue]] = [((name,), name, item) for name, item in part.items()]
    while pending:
        place, name, item = pending.pop()
        if name in _LABELS:
            continue
        if isinstance(item, str):
            if _ADDRESS.search(name) or _is_address(item):
                yield place, item
        elif isinstance(item, list):
            pending.extend(((*place, index), name, each) for index, each in enumerate(item))
        elif isinstance(item, dict):
            pending.extend(((*place, inner), inner, each) for inner, each in item.items())


def _is_address(text: str) -> bool:
    """Return whether a text is an address, whatever the name of its field. A word and a colon are not enough, since
    prose may begin with them."""
    found = _SCHEME.match(_NOISE.sub("", text[:64]))
    return found is not None and (found[2] is not None or found[1].lower() in ("data", "file", "gs", "s3"))


def _scheme(address: str) -> str | None:
    # URL parsers skip control characters and spaces. Some parsers skip these characters within a scheme too.
    found = _SCHEME.match(_NOISE.sub("", address[:64]))
    return found[1].lower() if found else None
