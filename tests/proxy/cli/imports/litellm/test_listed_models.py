"""Models of `/model/info`: the database's models without the fields that LiteLLM adds, and without the models of the
configuration.
"""

from pathlib import Path
from typing import Any

from config.sections.price_section import PriceSection
from proxy.cli.imports.litellm.database_files import Exports
from proxy.cli.imports.litellm.settings import is_masked
from tests.proxy.cli.imports.kit import Imported, imported
from tests.proxy.cli.imports.litellm.kit import written


def listed(folder: Path, config: dict[str, Any], *entries: dict[str, Any]) -> Imported:
    exports = Exports(models=(written(folder / "models.json", {"data": list(entries)}),))
    return imported("litellm", written(folder / "config.json", config), exports=exports)


def entry(name: str, model: str, stored: bool, **params: object) -> dict[str, Any]:
    info = {"id": name, "db_model": stored, "supports_vision": True, "input_cost_per_token": 1e-06}
    info |= {"output_cost_per_token": 2e-06, "tiered_pricing": None, "litellm_provider": "openai"}
    return {"model_name": name, "litellm_params": {"model": model, **params}, "model_info": info}


CONFIG = {"model_list": [{"model_name": "a", "litellm_params": {"model": "openai/a", "api_key": "os.environ/A"}}]}


def test_models_of_the_database_are_added_and_those_of_the_configuration_are_its_own(tmp_path: Path) -> None:
    rows = (entry("a", "openai/a", False), entry("b", "openai/b", True), entry("a", "groq/a", True))
    made = listed(tmp_path, CONFIG, *rows)
    assert set(made.table.snapshot.models) == {"openai/a", "openai/b", "groq/a"}
    assert made.remarks.counts["model"] == (3, 3)
    assert made.losses == []
    price = made.table.loaded.config.models["openai/b"].price
    assert isinstance(price, PriceSection)
    assert (price.input, price.output) == (1, 2)
    assert any("has no credentials" in hint for hint in made.remarks.hints)


def test_without_a_model_list_all_are_taken(tmp_path: Path) -> None:
    made = listed(tmp_path, {"general_settings": {}}, entry("a", "openai/a", False))
    assert list(made.table.snapshot.models) == ["openai/a"]


def test_a_masked_value_is_not_taken_and_a_blocked_model_is_out_of_service(tmp_path: Path) -> None:
    blocked = entry("b", "openai/b", True)
    blocked["model_info"]["blocked"] = True
    made = listed(tmp_path, CONFIG, entry("c", "openai/c", True, organization="or****23"), blocked)
    assert "models.c.litellm_params.organization" in made.lost
    assert made.table.loaded.config.models["openai/b"].out_of_service
    assert made.remarks.counts["model"] == (3, 3)
    assert "****" not in made.text
    assert not is_masked(None)
