"""Types of single values, with their JSON Schemas. No message repeats the rejected value, which may be a secret."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, SecretStr, WithJsonSchema
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from config.addresses import reach, redis_fault, url_fault
from config.reading.yaml_scalars import Unquoted, reread
from config.time_zones import zone_fault

REFERENCE_PATTERN: Final = r"\$\{"
"""Matches text with a reference. It may expand to any value, so editors must accept it in every field."""

_LONGEST_NAME: Final = 256
"""The most characters of a name. A model name that a client sends may have no more characters either."""

TextCheck = Callable[[str], object]


def refuse(message: str) -> PydanticCustomError:
    """Return the error that a field raises. The operator sees the message unchanged."""
    return PydanticCustomError("refused", "{message}", {"message": message})


@dataclass(frozen=True, slots=True, eq=False)
class Checked:
    """Annotation of a text field. `check` returns the value, or raises. `schema` is added to the JSON Schema."""

    check: TextCheck
    schema: Mapping[str, str | int] | None = None

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self._apply, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**handler(schema), **(self.schema or {})}

    def _apply(self, value: object) -> object:
        return self.check(value) if isinstance(value, str) else value


@dataclass(frozen=True, slots=True, eq=False)
class Referable:
    """Annotation of a field that is not text: it accepts an unquoted `${VAR}`, and reads its value as YAML would."""

    convert: Callable[[object], object] = lambda value: value
    text_pattern: str = ""
    title: str = ""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self._apply, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        inner = handler(schema)
        options: list[JsonSchemaValue] = inner.pop("anyOf", None) or [dict(inner)]
        pattern = f"{self.text_pattern}|{REFERENCE_PATTERN}" if self.text_pattern else REFERENCE_PATTERN
        titled = {"title": self.title} if self.title else {}
        return {**titled, "anyOf": [*options, {"type": "string", "pattern": pattern}]}

    def _apply(self, value: object) -> object:
        return self.convert(reread(value) if isinstance(value, Unquoted) else value)


def _matcher(pattern: str, message: str) -> TextCheck:
    compiled = re.compile(pattern)

    def check(value: str) -> str:
        if len(value) > _LONGEST_NAME or not compiled.fullmatch(value):
            raise refuse(message)
        return value

    return check


def key_matching(pattern: str, message: str) -> Checked:
    """Annotate a key that must match the whole pattern. Keys hold no references."""
    return Checked(_matcher(pattern, message), {"pattern": f"^({pattern})$", "maxLength": _LONGEST_NAME})


def value_matching(pattern: str, message: str) -> Checked:
    """Annotate a value that must match the whole pattern after its references are expanded."""
    return Checked(_matcher(pattern, message), {"pattern": f"^({pattern})$|{REFERENCE_PATTERN}"})


# Durations, moments, sizes and tokens -------------------------------------------------------------------------------

_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
DURATION_PATTERN: Final = r"^([0-9]{1,9}(\.[0-9]{1,6})?(ms|s|m|h|d))+$"
_DURATION_PART: Final = re.compile(r"([0-9.]+)(ms|s|m|h|d)")
_LONGEST: Final = 86400.0

_BYTES: Final = {"": 1, "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_SIZE: Final = r"^[0-9]{1,12} ?(B|kB|MB|GB|KiB|MiB|GiB)?$"
_SIZE_PARTS: Final = re.compile(r"([0-9]+) ?([A-Za-z]*)")


def to_seconds(value: object) -> object:
    """Convert text such as `1m30s` to seconds. Other values are returned unchanged, for the field to check."""
    if not isinstance(value, str):
        return value
    if not re.fullmatch(DURATION_PATTERN, value):
        raise refuse("must be a duration with its unit, such as 500ms, 30s, 5m, 1h30m or 1d")
    return sum(float(number) * _SECONDS[unit] for number, unit in _DURATION_PART.findall(value))


def to_bytes(value: object) -> object:
    """Convert text such as `32MiB` to bytes. Other values are returned unchanged."""
    if not isinstance(value, str):
        return value
    parts = _SIZE_PARTS.fullmatch(value)
    if parts is None or not re.fullmatch(_SIZE, value):
        raise refuse("must be a size such as 500kB, 32MiB, 1GiB or a number of bytes")
    return int(parts[1]) * _BYTES[parts[2]]


_THOUSANDS: Final = {"k": 10**3, "m": 10**6}
_TOKENS: Final = r"^[0-9]{1,9}(\.[0-9]{1,3})?[kKmM]$"


def to_tokens(value: object) -> object:
    """Convert text such as `128k` (128,000) or `1.5m` (1,500,000) to tokens. Other values are returned unchanged."""
    if not isinstance(value, str):
        return value
    if not re.fullmatch(_TOKENS, value):
        raise refuse("must be a number of tokens, such as 128000, 128k or 1m (k is 1,000, m is 1,000,000)")
    return int(Decimal(value[:-1]) * _THOUSANDS[value[-1].lower()])


_DAY: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_MOMENT: Final = rf"^{_DAY}([Tt ][0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}(\.[0-9]{{1,6}})?([Zz]|[+-][0-9]{{2}}:[0-9]{{2}}))?$"


def to_moment(value: str) -> datetime:
    """Parse an RFC 3339 time with its zone. A date means the end of that day in UTC."""
    try:
        if re.fullmatch(_DAY, value):
            return datetime.fromisoformat(value).replace(tzinfo=UTC) + timedelta(days=1)
        if re.fullmatch(_MOMENT, value):
            return datetime.fromisoformat(value.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise refuse("must be a date such as 2026-12-31, or a time with its zone such as 2026-12-31T18:00:00Z")


def off_as_word(value: object) -> object:
    """Return `off` for false, since YAML reads an unquoted `off` as false. The same holds for an expanded reference
    whose value reads as false. Other values are returned unchanged."""
    return "off" if value is False or (isinstance(value, Unquoted) and reread(value) is False) else value


Duration = Annotated[float, Field(ge=0, le=_LONGEST), Referable(to_seconds, DURATION_PATTERN, "duration")]
Timeout = Annotated[
    Annotated[float, Field(gt=0, le=_LONGEST)] | None, Referable(to_seconds, DURATION_PATTERN, "duration")
]
Lifetime = Annotated[float, Field(ge=1, le=30 * _LONGEST), Referable(to_seconds, DURATION_PATTERN, "duration")]
Keep = Annotated[float, Field(ge=_LONGEST, le=3660 * _LONGEST), Referable(to_seconds, DURATION_PATTERN, "duration")]
Moment = Annotated[
    datetime,
    Checked(to_moment),
    WithJsonSchema({"title": "date or time", "type": "string", "pattern": f"{_MOMENT}|{REFERENCE_PATTERN}"}),
]
Size = Annotated[int, Field(ge=1024, le=2**30), Referable(to_bytes, _SIZE, "size")]


def _check_zone(value: str) -> str:
    if fault := zone_fault(value):
        raise refuse(fault)
    return value


TimeZone = Annotated[str, Checked(_check_zone)]

# Numbers and switches -----------------------------------------------------------------------------------------------

Port = Annotated[int, Field(ge=0, le=65535), Referable()]
Weight = Annotated[int, Field(ge=0, le=1_000_000), Referable()]
Workers = Annotated[Annotated[int, Field(ge=1, le=256)] | Literal["auto"], Referable()]
Tokens = Annotated[Annotated[int, Field(ge=1, le=1_000_000_000)] | None, Referable(to_tokens, _TOKENS, "token count")]
TokenCount = Annotated[Annotated[int, Field(ge=1, le=1_000_000_000)], Referable(to_tokens, _TOKENS, "token count")]
LeastTokens = Annotated[int, Field(ge=0, le=1_000_000_000), Referable(to_tokens, _TOKENS, "token count")]
Dollars = Annotated[float, Field(ge=0, le=1_000_000), Referable()]
OptionalDollars = Annotated[Annotated[float, Field(ge=0, le=1_000_000)] | None, Referable()]
Switch = Annotated[bool, Referable()]
OptionalSwitch = Annotated[bool | None, Referable()]
Attempts = Annotated[Annotated[int, Field(ge=1, le=10)] | None, Referable()]
SameDeployment = Annotated[Annotated[int, Field(ge=0, le=9)] | None, Referable()]
Failures = Annotated[Annotated[int, Field(ge=1, le=1000)] | None, Referable()]
Ratio = Annotated[Annotated[float, Field(ge=0, le=1)] | None, Referable()]
Repeats = Annotated[Annotated[float, Field(ge=0, le=10_000)] | None, Referable()]
AutoOrOff = Annotated[Literal["auto", "off"], Referable(), BeforeValidator(off_as_word)]
Safety = Annotated[Literal["safe", "strict", "off"] | None, Referable(), BeforeValidator(off_as_word)]
Policy = Annotated[Literal["priority", "weighted", "round_robin", "least_busy", "fastest"], Referable()]
LogFormat = Annotated[Literal["json", "text"], Referable()]
OnUnsupported = Annotated[Literal["error", "drop"] | None, Referable()]
ContextBehavior = Annotated[Literal["truncate", "error"] | None, Referable()]
StreamUpstream = Annotated[Literal["auto", "off"] | None, Referable(), BeforeValidator(off_as_word)]
ClientAuth = Annotated[Literal["basic", "post"], Referable()]

# Names --------------------------------------------------------------------------------------------------------------

# Names become metric labels, log fields and URL segments: letters, digits and a few marks, but no segment `.` or `..`.
_WORD: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
_SEGMENT: Final = r"(?!\.{1,2}(/|$))[A-Za-z0-9._:@-]+"
_SLASHED: Final = rf"{_SEGMENT}(/{_SEGMENT})*"

_WORD_MESSAGE: Final = "must be 1 to 64 letters, digits, '.', '_' or '-', the first a letter or digit"
_NAME_MESSAGE: Final = "may hold letters, digits and . _ : @ - in segments between slashes, 256 characters at most"

VendorName = Annotated[str, key_matching(_WORD, f"a vendor name {_WORD_MESSAGE}")]
DeploymentName = Annotated[str, key_matching(_WORD, f"a deployment name {_WORD_MESSAGE}")]
TeamName = Annotated[str, key_matching(_WORD, f"a team name {_WORD_MESSAGE}")]
TagName = Annotated[str, key_matching(_WORD, f"the name of a tag {_WORD_MESSAGE}")]
KeyName = Annotated[str, value_matching(_WORD, f"the name of a key {_WORD_MESSAGE}")]
SharedPrefix = Annotated[str, value_matching(_WORD, f"a prefix {_WORD_MESSAGE}")]
NamedVendor = Annotated[str, value_matching(_WORD, f"a vendor name {_WORD_MESSAGE}")]
ProfileName = Annotated[str, value_matching(_WORD, f"a profile name {_WORD_MESSAGE}")]
ModelKey = Annotated[
    str,
    key_matching(rf"{_WORD}/(\*|{_SLASHED})", f"a model key is vendor/model or vendor/*, and {_NAME_MESSAGE}"),
]
ServiceTier = Annotated[str, key_matching(_WORD, f"a service tier {_WORD_MESSAGE}")]
RouteName = Annotated[str, key_matching(_SLASHED, f"a route name {_NAME_MESSAGE}")]
RequestedName = Annotated[str, key_matching(_SLASHED, f"a name that a team requests {_NAME_MESSAGE}")]
TargetName = Annotated[str, value_matching(_SLASHED, f"a target is one model, deployment or route: it {_NAME_MESSAGE}")]
SessionField = Annotated[
    str,
    value_matching(
        r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}",
        "must be the name of a header or of a field: 1 to 64 letters, digits, '.', '_' or '-'",
    ),
]
AllowedName = Annotated[
    str,
    value_matching(
        rf"\*|{_WORD}/\*|{_SLASHED}",
        "must be *, vendor/*, a model, a deployment or a route; * stands alone or directly after the vendor",
    ),
]

# Text ---------------------------------------------------------------------------------------------------------------


def _check_text(value: str) -> str:
    if not value or len(value) > 1024 or not value.isprintable():
        raise refuse("must be 1 to 1024 printable characters")
    return value


def _check_host(value: str) -> str:
    bare = value[1:-1] if value.startswith("[") and value.endswith("]") else value
    if bare not in ("0.0.0.0", "::") and reach(bare) == "forbidden":  # noqa: S104 -- named, not bound
        raise refuse("must be a host name or an IP address")
    return bare


def _rejecting_fault(fault_of: Callable[[str], str | None]) -> TextCheck:
    def check(value: str) -> str:
        if fault := fault_of(value):
            raise refuse(fault)
        return value

    return check


def _check_optional_text(value: str) -> str:
    return value and _check_text(value)


Text = Annotated[str, Checked(_check_text, {"minLength": 1, "maxLength": 1024})]
OptionalText = Annotated[str, Checked(_check_optional_text, {"maxLength": 1024})]
Host = Annotated[str, Checked(_check_host)]
BaseUrl = Annotated[str, Checked(_rejecting_fault(url_fault), {"pattern": rf"^https?://|{REFERENCE_PATTERN}"})]

_PARAM_VALUE: Final = re.compile(r"[A-Za-z0-9._~-]{1,253}(:[0-9]{1,5})?")


def _check_param(value: str) -> str:
    if not _PARAM_VALUE.fullmatch(value):
        raise refuse(
            "may hold letters, digits and . _ ~ - (and a port after a host), since it becomes part of an address"
        )
    return value


def _digits_as_text(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


UrlParam = Annotated[str, Checked(_check_param), BeforeValidator(_digits_as_text, json_schema_input_type=str | int)]
UrlParamName = Annotated[str, key_matching(r"[a-z][a-z0-9_]{0,63}", "must be a placeholder's name, such as resource")]

# Parts of signed AWS requests.
AwsName = Annotated[str, value_matching(r"[a-z][a-z0-9-]{0,63}", "must be lower-case letters, digits and '-'")]
RoleArn = Annotated[
    str,
    value_matching(
        r"arn:[a-z0-9-]+:iam::[0-9]{12}:role/[A-Za-z0-9_+=,.@/-]+",
        "must be a role, such as arn:aws:iam::123456789012:role/gateway",
    ),
]

# Secrets ------------------------------------------------------------------------------------------------------------


def _check_credential(value: str) -> str:
    wrong = next((i for i, c in enumerate(value, 1) if not "!" <= c <= "~"), None)
    if wrong is not None:
        raise refuse(f"holds a space, a line break or a character outside ASCII at position {wrong}")
    return value


def _check_secret(value: str) -> str:
    if not value:
        raise refuse("must not be empty")
    return _check_credential(value)


def _check_digest(value: str) -> str:
    if not re.fullmatch(r"sha256:[0-9A-Fa-f]{64}", value):
        raise refuse("must be sha256: and 64 hex digits; `dragoman key new` makes a key and prints its line")
    return value.lower()


Credential = Annotated[SecretStr, Checked(_check_credential)]
Secret = Annotated[SecretStr, Checked(_check_secret)]
RedisUrl = Annotated[
    SecretStr, Checked(_rejecting_fault(redis_fault), {"pattern": rf"^(rediss?|unix)://|{REFERENCE_PATTERN}"})
]
KeyDigest = Annotated[str, Checked(_check_digest, {"pattern": rf"^sha256:[0-9A-Fa-f]{{64}}$|{REFERENCE_PATTERN}"})]

# Headers ------------------------------------------------------------------------------------------------------------

# Hop-by-hop headers, headers that frame the message and headers with the credential: only the gateway sets them.
_OWN_HEADERS: Final = frozenset(
    {
        "accept-encoding",
        "api-key",
        "authorization",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "cookie",
        "expect",
        "forwarded",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "trailers",
        "transfer-encoding",
        "upgrade",
        "x-amz-date",
        "x-amz-security-token",
        "x-api-key",
        "x-goog-api-key",
    }
)
_OWN_PREFIXES: Final = ("proxy-", "x-forwarded-")
_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")


def _check_header_name(value: str) -> str:
    lowered = value.lower()
    if not _TOKEN.fullmatch(value):
        raise refuse("is not a header name")
    if lowered in _OWN_HEADERS or lowered.startswith(_OWN_PREFIXES):
        raise refuse("this header is set by the gateway (a credential belongs in api_key or credentials)")
    return value


def _check_header_value(value: str) -> str:
    wrong = next((i for i, c in enumerate(value, 1) if not (" " <= c <= "~" or "\xa0" <= c <= "\xff")), None)
    if wrong is not None:
        raise refuse(f"holds a line break, a control character or one outside Latin-1 at position {wrong}")
    if len(value) > 4096 or value != value.strip():
        raise refuse("must be at most 4096 characters without space around them")
    return value


HeaderName = Annotated[str, Checked(_check_header_name)]
_PLAIN_HEADER: Final = r"[0-9A-Za-z]+(-[0-9A-Za-z]+)*(-\*)?"
AllowedHeader = Annotated[
    str,
    value_matching(_PLAIN_HEADER, "must be words with '-' between, as in x-my-header; * stands last, as in x-team-*"),
]
AllowedField = Annotated[str, value_matching(r"[A-Za-z_][A-Za-z0-9_.-]{0,127}", "must be the name of a field")]
Scheme = Annotated[
    str, value_matching(r"[a-z][a-z0-9+.-]{1,31}", "must be a URL scheme in lower case without a colon, such as https")
]
HeaderValue = Annotated[SecretStr, Checked(_check_header_value)]
