"""Converts the parts of an account at a vendor that all gateways' configurations have: the key, the address and the
settings of a cloud.

A literal credential is never copied: the new config file refers to an environment variable instead, and a comment
explains it. Addresses in a private network get `allow_private: true`, which the config file requires.

Sources: Microsoft's page on the OAuth 2.0 client credentials flow for the token endpoint; the environment variables of
AWS's and Google's own tools, November 2026.
"""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from config.addresses import reach, url_fault
from proxy.cli.imports.foreign_section import ForeignSection
from proxy.cli.imports.table_draft import Block, DraftValue, Reference, TableDraft
from proxy.cli.imports.table_values import fits, is_harmless_header, is_variable, variable, word

SAMPLE_URL: Final = "https://sample.example.com"
NO_KEYS: Final = frozenset({"", "none", "null", "empty"})
"""The values that people write as a key for a server that needs none."""

_HOST_PARTS: Final = re.compile(r"^(api|www)\.|\.(com|net|org|io|ai|app|dev)$")
_ARN: Final = re.compile(r"arn:[a-z0-9-]+:iam::[0-9]{12}:role/[A-Za-z0-9_+=,.@/-]+")
_AWS_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,63}")


@dataclass(slots=True)
class Accounts:
    """Reads accounts for one import. `variable_of` returns the name of the environment variable to which a text of the
    imported configuration refers; `None` for a literal text."""

    draft: TableDraft
    variable_of: Callable[[str], str | None]
    _literals: dict[tuple[str, str], Reference] = field(default_factory=dict, repr=False)
    _counts: dict[str, int] = field(default_factory=dict)
    _given: set[str] = field(default_factory=set)

    def secret(self, section: ForeignSection, key: str, vendor: str, suffix: str = "API_KEY") -> Reference | None:
        """Return a reference for a credential. A literal credential becomes a reference to a variable that the
        operator must set."""
        text = section.text(key)
        return None if text is None else self.secret_of(section, key, text, vendor, suffix)

    def secret_of(
        self, section: ForeignSection, key: str, text: str, vendor: str, suffix: str = "API_KEY"
    ) -> Reference | None:
        """Return a reference for a credential's text; `None` if the text means that there is no credential."""
        name = self.variable_of(text)
        if name is not None:
            return self.named(section, key, name, f"sample-{name}")
        if text.strip().lower() in NO_KEYS:
            return None
        return self._uncopied(section, key, text, variable(vendor, suffix), "a credential is not copied")

    def _uncopied(self, section: ForeignSection, key: str, text: str, base: str, reason: str) -> Reference:
        """Return a reference for a text that is not copied. Equal texts share one variable."""
        digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
        known = self._literals.get((base, digest))
        if known is None:
            # The file itself may refer to a variable with this name.
            count = self._counts.get(base, 0) + 1
            while (name := base if count == 1 else f"{base}_{count}") in self.draft.samples:
                count += 1
            self._counts[base] = count
            self._given.add(name)
            known = self._literals[base, digest] = self.draft.refer(name, f"sample-{name}")
        section.note(key, f"{reason}: put it into the environment as {known.text[2:-1]}")
        return known

    def named(self, section: ForeignSection, key: str, name: str, sample: str) -> Reference | None:
        """Return a reference to a variable of the imported configuration. Return `None` if the config file cannot have
        a variable with this name."""
        if not is_variable(name):
            section.report_key(key, "refers to something else than an environment variable: not taken")
            return None
        if name in self._given:
            section.note(key, f"{name} stands for a credential that was written out too: give one of them another name")
        return self.draft.refer(name, sample)

    def text(self, section: ForeignSection, key: str, sample: str) -> str | Reference | None:
        """Return a text that is not a secret, or a reference."""
        text = section.text(key)
        name = None if text is None else self.variable_of(text)
        if name is not None:
            return self.named(section, key, name, sample)
        return text or None

    def url_param(self, section: ForeignSection, key: str, sample: str = "sample") -> str | Reference | None:
        """Return a part of an address, or a reference."""
        value = self.text(section, key, sample)
        if isinstance(value, str) and not fits("url_param", value):
            section.report_key(key, "cannot be part of an address: not taken")
            return None
        return value

    def address(self, section: ForeignSection, key: str, vendor: str, path: str = "") -> dict[str, DraftValue]:
        """Return `base_url`, and `allow_private` if the address is in a private network. `path` is appended to the
        address."""
        value = self.text(section, key, SAMPLE_URL)
        if value is None:
            return {}
        if isinstance(value, Reference):
            section.comments.append(f"Where {value.text} is in the own network, add `allow_private: true`.")
            return {"base_url": Reference(f"{value.text}{path}")}
        host = urlsplit(value).hostname if url_fault(value) is None or "://0.0.0.0" in value else None
        if host == "0.0.0.0":  # noqa: S104 -- an address to call, with which other gateways mean this machine
            section.note(key, "0.0.0.0 is not an address to call: written as 127.0.0.1")
            value = value.replace("://0.0.0.0", "://127.0.0.1", 1)
            host = "127.0.0.1"
        if host is None or url_fault(value) is not None:
            missing = self.draft.refer(variable(vendor, "base_url"), SAMPLE_URL)
            section.report_key(key, f"is not an address to call: put one into the environment as {missing.text[2:-1]}")
            return {"base_url": missing}
        whole = value.rstrip("/")
        settings: dict[str, DraftValue] = {"base_url": whole if whole.endswith(path) else whole + path}
        if reach(host) in ("loopback", "private") or (value.startswith("http://") and reach(host) == "unknown"):
            settings["allow_private"] = True
        return settings

    def headers(self, section: ForeignSection, vendor: str) -> dict[str, DraftValue]:
        """Return the headers of a section. A value that may be a credential becomes a reference."""
        found: dict[str, DraftValue] = {}
        for name in section.written():
            value = self._header_value(section, name, name, vendor) if fits("header", name) else None
            if value is None:
                section.report_key(name, "is not a valid header: not taken")
            else:
                found[name] = value
        return found

    def header(self, section: ForeignSection, key: str, name: str, vendor: str) -> str | Reference | None:
        """Return the value of a header that the section has under `key`."""
        value = self._header_value(section, key, name, vendor)
        if value is None and section.holds_text(key):
            section.report_key(key, "is not a valid header value: not taken")
        return value

    def _header_value(self, section: ForeignSection, key: str, name: str, vendor: str) -> str | Reference | None:
        text = section.text(key)
        variable_name = None if text is None else self.variable_of(text)
        if variable_name is not None:
            return self.named(section, key, variable_name, "sample")
        if not text or not fits("header value", text):
            return None
        if is_harmless_header(name, text):
            return text
        reason = "its value may be a credential and is not copied"
        return self._uncopied(section, key, text, variable(vendor, name), reason)

    def role(self, section: ForeignSection, key: str) -> str | Reference | None:
        """Return the ARN of an AWS role, or a reference."""
        value = self.text(section, key, "arn:aws:iam::123456789012:role/sample")
        if isinstance(value, str) and not _ARN.fullmatch(value):
            section.report_key(key, "is not an AWS role: not taken")
            return None
        return value

    def aws(self, region: str | Reference | None, **credentials: str | Reference | None) -> dict[str, DraftValue]:
        """Return the settings of an AWS account. If the region is unknown, it refers to AWS's own variable."""
        known = region if region is not None else self.draft.refer("AWS_REGION", "us-east-1")
        settings: dict[str, DraftValue] = {"url_params": Block({"region": known})}
        if any(credentials.values()):
            given: dict[str, DraftValue] = {key: value for key, value in credentials.items() if value is not None}
            settings["credentials"] = Block({"aws": Block(given)})
        return settings

    def aws_keys(self, section: ForeignSection, *keys: str) -> bool:
        """Report that the keys of an AWS account stay in the environment. Return whether there are any."""
        written = [key for key in keys if key in section]
        for key in written:
            section.note(key, "a credential is not copied: AWS's own variables or files are read (credentials: aws)")
        if written:
            self.draft.samples.setdefault("AWS_ACCESS_KEY_ID", "sample")
            self.draft.samples.setdefault("AWS_SECRET_ACCESS_KEY", "sample")
        return bool(written)

    def google_file(self, section: ForeignSection, key: str) -> dict[str, DraftValue]:
        """Return the credentials of a Google account. A path is copied, any other value is reported."""
        value = section.text(key) if section.holds_text(key) else None
        if value is not None and self.variable_of(value) is None and value.endswith(".json") and value.isprintable():
            return {"credentials": Block({"google": Block({"file": value})})}
        if key in section:
            section.note(key, "a credential is not copied: name its file in GOOGLE_APPLICATION_CREDENTIALS")
        return {"credentials": "google"} if key in section else {}


def aws_region(value: str | Reference | None) -> str | Reference | None:
    """Return a region; `None` for a text that cannot be one."""
    return None if isinstance(value, str) and not _AWS_NAME.fullmatch(value) else value


def vendor_of_address(value: str, variable_name: str | None, otherwise: str) -> str:
    """Return a name for the vendor at an address, or at the address in a variable."""
    if variable_name is not None:
        stem = re.sub(r"_(API_BASE|BASE_URL|API_URL|ENDPOINT|URL|BASE|HOST)$", "", variable_name.upper())
        return word(stem.lower().replace("_", "-"), otherwise)
    return word(name_of_address(value).replace(".", "-"), otherwise)


def name_of_address(value: str) -> str:
    """Return the host of an address without common parts such as `api.` and `.com`, and its port. Return an empty text
    if it is not an address."""
    value = value.replace("://0.0.0.0", "://localhost", 1)
    if url_fault(value) is not None:
        return ""
    parts = urlsplit(value)
    host = parts.hostname or ""
    name = "local" if reach(host) == "loopback" else _HOST_PARTS.sub("", _HOST_PARTS.sub("", host))
    return f"{name}-{parts.port}" if parts.port else name
