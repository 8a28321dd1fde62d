"""Credentials of a target and the headers they become; the one place that reveals a secret.

Never reads the environment, a file or a clock.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import SecretStr

MASK = "********"


@dataclass(frozen=True, slots=True)
class Credential:
    """How a target authenticates: a key with its header style, and static headers whose values may be secret.

    `style` is `bearer` (`Authorization: Bearer KEY`), `header` (`NAME: KEY`) or `none`. Without a key nothing is sent,
    which vLLM and llama.cpp accept when they were started without one.
    """

    style: Literal["bearer", "header", "none"] = "none"
    header: str = "Authorization"
    key: SecretStr | None = None
    static: Mapping[str, SecretStr] = field(default_factory=dict)

    def headers(self) -> dict[str, str]:
        """The headers in clear, for the socket only."""
        revealed = {name: value.get_secret_value() for name, value in self._secrets().items()}
        if self.style == "bearer" and self.key is not None:
            revealed[self.header] = f"Bearer {revealed[self.header]}"
        return revealed

    def masked(self) -> dict[str, str]:
        """The same headers with every value hidden, for people."""
        return dict.fromkeys(self._secrets(), MASK)

    def _secrets(self) -> dict[str, SecretStr]:
        secrets = dict(self.static)
        if self.style != "none" and self.key is not None:
            secrets[self.header] = self.key
        return secrets
