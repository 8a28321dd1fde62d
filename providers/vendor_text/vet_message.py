"""Masks keys, private addresses and file paths in a vendor's message, because they belong to the operator.

URLs of public documentation, paths of APIs and JSON pointers stay, because they show the client how to correct its
request.
"""

import re
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from providers.vendor_text.late_pattern import LatePattern

MAX_MESSAGE = 500
_SECRET = LatePattern(
    r"(?i)\b(?:sk|pk|rk|xai|nvapi)[-_][\w*-]{6,}"
    r"|\b(?:gsk|fw|hf)_[\w*-]{6,}"
    # Ordinary words begin in the same way (`key-holder`), but an id has a digit.
    r"|\b(?:key|org|proj)[-_](?=[a-z_*-]*\d)[\w*-]{6,}"
    r"|\bBearer\s+\S+|\bA[KS]IA[A-Z0-9]{12,}|\bAIza[\w-]{20,}|\bya29\.[\w.-]+|\beyJ[\w-]+\.[\w-]+\.[\w-]*"
    # Keys without a known prefix are long runs of letters and digits.
    r"|\b(?=[a-z]*\d)(?=\d*[a-z])[a-z0-9]{32,}\b"
)
_ADDRESS = LatePattern(
    r"(?i)(?P<url>\b[a-z][a-z0-9+.-]*://[^\s'\"<>`]+)"
    r"|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b"
    r"|(?<![\w:])\[?(?:(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}|(?:(?:[0-9a-f]{1,4}:)+|:)(?::[0-9a-f]{1,4})+)(?:%\w+)?\]?(?::\d+)?\b"
    r"|\b(?:localhost|(?:[a-z0-9-]+\.)+[a-z][a-z0-9-]*):\d{2,5}\b"
    r"|\b[a-z]:\\[^\s'\"]+"
    r"|(?P<path>(?<![\w.])~?/(?:[\w.@$~{}%-]+/)+[\w.@$~{}%-]*)"
)
_CONTROL = LatePattern(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_TRAILING_PUNCTUATION: Final = ".,;:!?)]}"
"""Punctuation that may follow an address but is not part of it."""

_PUBLIC_URL = LatePattern(
    r"(?i)https?://(?P<host>(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,24})(?:/[^\s?#]*)?"
)
_PRIVATE_HOST = LatePattern(
    r"(?i)(?:^|\.)(?:local|localhost|localdomain|internal|intranet|intra|lan|corp|home|private|svc|cluster|consul"
    r"|docker|pod|node|test|example$|invalid|arpa|onion)(?:\.|$)"
)
_UUID = LatePattern(r"(?i)[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")

_API_PATH = LatePattern(
    r"/(?:v\d\w*|api|openai|anthropic|chat|completions|responses|messages|embeddings|moderations|audio|images|rerank"
    r"|compatible-mode|deployments|inference|invocations|generate)/[\w.@:$/-]*"
)
_FILE_ROOT = LatePattern(
    r"(?i)~?/(?:home|root|mnt|media|models?|data|opt|usr|var|etc|tmp|srv|proc|sys|run|dev|lib\d*|s?bin|boot|snap|nix"
    r"|users|volumes?|private|library|applications|system|work|workdir|workspaces?|[a-z]+-workspace|apps?|code|src"
    r"|source|build|repos?|projects?|scratch|shared?|storage|nfs|efs|fsx|lustre|cephfs?|dbfs|raid|nvme|ssd|disks?"
    r"|cache|checkpoints?|ckpts?|weights|huggingface|hf|hub|content|kaggle|artifacts?|repository|model[-_]\w+|llms?"
    r"|secrets?|configs?|venv|conda|databricks|cluster|gpfs\w*|pvc?|bucket|export)\d*/"
)
_FOLDER = r"/\.|/(?:site-packages|snapshots|checkpoints?|weights)/"
_FILE_MARK = LatePattern(rf"(?i){_FOLDER}|\.\w{{1,12}}$|\.(?:py|so|go|rs|c|cc|cpp|js|ts|java|rb)\b")
_CERTAIN_FILE = LatePattern(
    rf"(?i){_FOLDER}|\.(?:py|so|go|rs|cc?|cpp|js|ts|java|rb|sh|gguf|safetensors|bin|pth?|onnx|ya?ml|json|txt|log|sock"
    r"|pem|key|crt|conf|ini|toml|env)$"
)
"""Signs that a path is a file path even if it looks like a path of an API: a hidden part, a known extension, and
folders of models and libraries. A path of an API may end with a model's version, which looks like an unknown
extension."""


def vet(text: str) -> str:
    """Return a vendor's message in a form that is safe to show: one line of at most MAX_MESSAGE characters, without
    keys, organisation ids, private addresses and file paths."""
    if len(text) > 2 * MAX_MESSAGE:
        # The text is not cut within a word, because half of a key would not be recognised as a key.
        text = text[: 2 * MAX_MESSAGE].rpartition(" ")[0] + " …"
    clean = _ADDRESS.sub(_masked, _SECRET.sub("[redacted]", _CONTROL.sub(" ", text)))
    return clean if len(clean) <= MAX_MESSAGE else clean[: MAX_MESSAGE - 1] + "…"


def _masked(found: re.Match[str]) -> str:
    address = found[0].rstrip(_TRAILING_PUNCTUATION)
    after = found[0][len(address) :]
    if found["url"] is not None:
        return _masked_url(address) + after
    if found["path"] is not None and _is_shown(address):
        return found[0]
    return f"[address]{after}"


def _masked_url(url: str) -> str:
    """Return the URL of a public page without its query, which may name the operator's account; a placeholder for any
    other URL."""
    page = re.split("[?#]", url, maxsplit=1)[0]
    found = _PUBLIC_URL.fullmatch(page)
    if found is None or _PRIVATE_HOST.search(found["host"]):
        return "[address]"
    return _UUID.sub("[redacted]", page)


def _is_shown(path: str) -> bool:
    """Return whether a path is a path of an API, or a JSON pointer."""
    if _API_PATH.fullmatch(path):
        return _CERTAIN_FILE.search(path) is None
    return _FILE_ROOT.match(path) is None and not path.startswith("~") and _FILE_MARK.search(path) is None


def hide_host(text: str, base_url: str, public: str | None) -> str:
    """Return a vetted message without the target's own host, which is the host of `base_url`. `public` is the base URL
    of the vendor's profile. If the target has another host, its whole domain counts as the operator's."""
    if not text:
        return text
    pattern = _own_hosts(base_url, public)
    return text if pattern is None else pattern.sub("[address]", text)


@lru_cache(maxsize=1024)
def _own_hosts(base_url: str, public: str | None) -> re.Pattern[str] | None:
    try:
        host = urlsplit(base_url).hostname or ""
        usual = urlsplit(public or "").hostname or ""
    except ValueError:
        return None
    name = re.escape(host)
    if ":" in host or host.rpartition(".")[2].isdigit():
        return None  # `vet` has already masked every IP address
    if "." not in host:
        # A bare word may also be the name of an engine, which may stay in its messages. So only host and port are
        # masked.
        return re.compile(rf"(?i)(?<![\w.-]){name}:\d{{2,5}}\b") if host else None
    if host != usual:
        parent = host.partition(".")[2]
        name = rf"(?:[a-z0-9-]+\.)*{re.escape(parent if '.' in parent else host)}"
    return re.compile(
        rf"(?i)(?:[a-z][a-z0-9+.-]*://)?(?<![\w.-]){name}(?![\w-]|\.\w)(?::\d{{2,5}})?(?:/[\w.~/%-]*[\w~/%-])?"
    )
