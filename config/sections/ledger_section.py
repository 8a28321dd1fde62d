"""The `server.ledger` section: the database that records the usage of teams."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field, PlainSerializer, PlainValidator, SecretStr, WithJsonSchema, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import PydanticKnownError

from config.addresses import ledger_fault
from config.sections.section import ShorthandSection
from config.sections.value_types import REFERENCE_PATTERN, Keep, Referable, Text, refuse

_DAY: Final = 86400.0
DEFAULT_FILE: Final = "ledger.db"
"""The name of the default ledger, which lies beside the config file. It is used if the configuration is a file, has
teams and sets no ledger."""

DEFAULT_JOURNAL: Final = "ledger.journal"
"""The folder beside the config file for the journals of a ledger in PostgreSQL."""

_OFF: Final = "off"
_SQLITE: Final = "sqlite:"


@dataclass(frozen=True, slots=True)
class LedgerAddress:
    """The path of a SQLite database as written, or the address of a PostgreSQL database, which may hold a password.
    There is no ledger if both are `None`."""

    file: str | None = None
    postgres: SecretStr | None = None


def _to_address(value: object) -> LedgerAddress:
    if value is False or value == _OFF:  # YAML reads an unquoted `off` as false
        return LedgerAddress()
    if not isinstance(value, str):
        raise PydanticKnownError("string_type")
    if fault := ledger_fault(value):
        raise refuse(fault)
    file = value.removeprefix(_SQLITE)
    return LedgerAddress(file=file) if file != value else LedgerAddress(postgres=SecretStr(value))


def _dumped(address: LedgerAddress) -> str:
    if address.file is not None:
        return f"{_SQLITE}{address.file}"
    return _OFF if address.postgres is None else str(address.postgres)


_URL_SCHEMA: Final[JsonSchemaValue] = {
    "type": "string",
    "format": "password",
    "pattern": rf"^(off$|sqlite:|postgres(ql)?://)|{REFERENCE_PATTERN}",
}
LedgerUrl = Annotated[LedgerAddress, PlainValidator(_to_address), PlainSerializer(_dumped), WithJsonSchema(_URL_SCHEMA)]


@dataclass(frozen=True, slots=True)
class LedgerLocation:
    """The location of a ledger: the file of a SQLite database, or the address of a PostgreSQL database, which may hold
    a password. `keep` is in seconds. `journals` is the folder into which every process writes first."""

    file: Path | None
    postgres: SecretStr | None
    keep: float
    unread: Literal["allow", "reject"]
    journals: Path


class LedgerSection(ShorthandSection):
    """The ledger: a row for each request. Budgets, limits by the calendar and `dragoman usage` are read from it. Each
    process writes its rows to a journal first, and the journal keeps them while the database is unavailable. Bare text
    is the url."""

    short_form: ClassVar[str] = "off, an address"

    url: LedgerUrl | None = Field(
        default=None,
        description="sqlite:FILE, relative to this file, for one gateway with any number of workers; postgresql://…, "
        f'best as "${{LEDGER_URL}}", for several gateways, which needs the extra `postgres`; or off. Built in: '
        f"sqlite:{DEFAULT_FILE} if the configuration has teams and is not the embedded one, otherwise off.",
    )
    keep: Keep = Field(default=400 * _DAY, description="How long the row of a request is stored, such as 400d.")
    unread: Annotated[Literal["allow", "reject"], Referable()] = Field(
        default="allow",
        description="What happens to requests of teams with a budget while a gateway that has just started could not "
        "yet read the spending from the ledger: allow accepts them, reject refuses them.",
    )

    journal: Text | None = Field(
        default=None,
        description="The folder, relative to this file, into which every process writes its rows first, and from "
        "which one process loads the ledger. It must be on a disk that outlives the process. Built in: the file's "
        f"name and .journal, or {DEFAULT_JOURNAL} for PostgreSQL.",
    )

    @property
    def is_off(self) -> bool:
        """Whether the configuration turns the ledger off."""
        return self.url == LedgerAddress()

    @property
    def is_postgres(self) -> bool:
        """Whether several gateways can use the same ledger."""
        return self.url is not None and self.url.postgres is not None

    def place(self, table: Path) -> "LedgerLocation | None":
        """Return the location of the ledger, by default beside the config file `table`; `None` if it is turned off."""
        url = self.url or LedgerAddress(file=DEFAULT_FILE)
        if self.is_off:
            return None
        file = None if url.file is None else table.parent / url.file
        journals = table.parent / DEFAULT_JOURNAL if file is None else file.with_name(f"{file.name}.journal")
        if self.journal is not None:
            journals = table.parent / self.journal
        return LedgerLocation(file, url.postgres, self.keep, self.unread, journals)

    @classmethod
    def short_form_schema(cls) -> JsonSchemaValue:
        return {"anyOf": [_URL_SCHEMA, {"const": False}]}

    @model_validator(mode="before")
    @classmethod
    def _from_url(cls, value: object) -> object:
        return {"url": value} if isinstance(value, str) or value is False else value
