"""The `server.ledger` section: where it is written down what teams used."""

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
"""The ledger of a table that is a file, has teams and says nothing: a file beside it."""

DEFAULT_JOURNAL: Final = "ledger.journal"
"""The folder beside the table for the journals of a ledger in PostgreSQL."""

_OFF: Final = "off"
_SQLITE: Final = "sqlite:"


@dataclass(frozen=True, slots=True)
class LedgerAddress:
    """The path of a SQLite database as written, or the address of a PostgreSQL one, which may hold a password; without
    either there is no ledger."""

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
class LedgerPlace:
    """Where a ledger is: the file of a SQLite database, or the address of a PostgreSQL one, which may hold a password.
    `keep` is in seconds; `journals` is the folder into which every process writes first."""

    file: Path | None
    postgres: SecretStr | None
    keep: float
    unread: Literal["allow", "reject"]
    journals: Path


class LedgerSection(ShorthandSection):
    """The ledger: a row for each request, from which budgets, limits by the calendar and `dragoman usage` are read.
    Each process writes its rows to a journal first, so that they wait there while it is away. Bare text is its url."""

    short_form: ClassVar[str] = "off, an address"

    url: LedgerUrl | None = Field(
        default=None,
        description="sqlite:FILE, relative to this file, for one gateway with any number of workers; "
        'postgresql://…, best as "${LEDGER_URL}", for several gateways, which needs the extra `postgres`; or off. '
        f"Built in: sqlite:{DEFAULT_FILE} where the table has teams and is no embedded one, otherwise off.",
    )
    keep: Keep = Field(default=400 * _DAY, description="How long the row of a request is kept, such as 400d.")
    unread: Annotated[Literal["allow", "reject"], Referable()] = Field(
        default="allow",
        description="What becomes of requests of teams with a budget while a gateway that has just started could not "
        "yet read from the ledger what was spent: allow answers them, reject refuses them.",
    )

    journal: Text | None = Field(
        default=None,
        description="The folder, relative to this file, into which every process writes its rows first, and from which "
        "one of them loads the ledger: on a disk that outlives the process. Built in: the file's name and .journal, or "
        f"{DEFAULT_JOURNAL} for PostgreSQL.",
    )

    @property
    def is_off(self) -> bool:
        """Whether the table says that there is no ledger."""
        return self.url == LedgerAddress()

    @property
    def is_postgres(self) -> bool:
        """Whether several gateways can have the same ledger."""
        return self.url is not None and self.url.postgres is not None

    def place(self, table: Path) -> "LedgerPlace | None":
        """Return where the ledger of a table is, by default beside its file; None where it is switched off."""
        url = self.url or LedgerAddress(file=DEFAULT_FILE)
        if self.is_off:
            return None
        file = None if url.file is None else table.parent / url.file
        journals = table.parent / DEFAULT_JOURNAL if file is None else file.with_name(f"{file.name}.journal")
        if self.journal is not None:
            journals = table.parent / self.journal
        return LedgerPlace(file, url.postgres, self.keep, self.unread, journals)

    @classmethod
    def short_form_schema(cls) -> JsonSchemaValue:
        return {"anyOf": [_URL_SCHEMA, {"const": False}]}

    @model_validator(mode="before")
    @classmethod
    def _from_url(cls, value: object) -> object:
        return {"url": value} if isinstance(value, str) or value is False else value
