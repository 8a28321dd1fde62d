"""Imports of other gateways' configurations, as the command does them, and the routes of the result."""

from dataclasses import dataclass
from pathlib import Path

from config.problem import Problem
from config.reading.table_files import Copies
from config.reading.yaml_tree import MapNode, parse
from proxy.cli.imports.foreign_section import ForeignSection
from proxy.cli.imports.import_command import read
from proxy.cli.imports.litellm.database_files import NO_EXPORTS, Exports
from proxy.cli.imports.remarks import Remarks
from proxy.cli.imports.table_draft import TableDraft
from proxy.cli.imports.write_yaml import table_text
from proxy.process.load_table import LoadedTable, Source
from proxy.routing.deployment_load import IDLE
from proxy.routing.resolve_model import plan_for
from proxy.routing.snapshot import ANYONE

FIXTURES = Path("tests/fixtures/imports")
TABLE = Path("table.yaml")


@dataclass(frozen=True)
class Imported:
    """The result of an import: the YAML text, the remarks on lost settings, and the configuration that the text
    holds.
    """

    draft: TableDraft
    text: str
    losses: list[Problem]
    remarks: Remarks
    table: LoadedTable

    @property
    def lost(self) -> dict[str, str]:
        """The reasons by path."""
        return {problem.path: problem.message for problem in self.losses}

    def reached(self, name: str, team: str | None = None) -> list[str]:
        """Return the deployments that a request for the name may go to, in the order of an idle gateway without
        chance.
        """
        user = ANYONE if team is None else self.table.snapshot.teams[team]
        return [target.name for target in plan_for(self.table.snapshot, user, name, "openai", IDLE).targets]


def imported(gateway: str, path: Path, name: str = "name", exports: Exports = NO_EXPORTS) -> Imported:
    """Import a file. Fails unless the configuration is valid once its variables are set."""
    draft, remarks = read(gateway, path, name, exports)
    text = table_text(draft)
    table = Source(TABLE, draft.samples).load_to_serve(Copies({TABLE: text.encode()}, {}))
    return Imported(draft, text, [*dict.fromkeys(remarks.problems)], remarks, table)


def fixture(name: str) -> Imported:
    """Import a fixture. Its folder is named after the gateway."""
    return imported(name.partition("/")[0], FIXTURES / name)


def section(text: str) -> ForeignSection:
    """Return a section of YAML text."""
    root = parse(text, "f.yaml").root
    assert isinstance(root, MapNode)
    return ForeignSection(root, (), Remarks(), [])
