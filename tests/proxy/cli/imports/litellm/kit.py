"""A LiteLLM installation, imported."""

import json
from collections.abc import Sequence
from pathlib import Path

from proxy.cli.imports.litellm.database_files import Exports
from tests.proxy.cli.imports.kit import Imported, imported
from tests.support.litellm_installation import Installation


def export(made: Installation, folder: Path) -> Exports:
    """Write the installation's files, with the configuration as config.json, and return the database's files."""
    pages = [written(folder / f"keys-{number}.json", page) for number, page in enumerate(made.pages, 1)]
    written(folder / "config.json", made.config)
    return Exports(
        tuple(pages),
        (written(folder / "teams.json", made.teams),),
        (written(folder / "models.json", made.models),),
    )


def written(path: Path, content: object) -> Path:
    """Write a JSON file."""
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def rows(folder: Path, keys: Sequence[object], teams: Sequence[object] = ()) -> Imported:
    """Import two models, `a` and `b`, with keys and teams. A key without a token gets one made from its position."""
    config = {"model_list": [{"model_name": name, "litellm_params": {"model": f"openai/{name}"}} for name in "ab"]}
    known = [
        {"token": f"{index:064x}", "key_alias": f"k{index}", **key} if isinstance(key, dict) else key
        for index, key in enumerate(keys)
    ]
    exports = Exports((written(folder / "keys.json", {"keys": known}),), (written(folder / "teams.json", teams),))
    return imported("litellm", written(folder / "config.json", config), exports=exports)
