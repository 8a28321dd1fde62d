"""A configuration that consists of several files."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from config.load_config import Loaded, fingerprint, load_file
from config.problem import ConfigError
from config.sections.price_section import PriceSection

MAIN = "version: 1\nvendors: {v: {}}\nmodels: {v/m: {}}\n"


def written(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder / next(iter(files))


def load(folder: Path, files: Mapping[str, str], env: Mapping[str, str] | None = None) -> Loaded:
    return load_file(written(folder, files), env or {})


def complaints(folder: Path, files: Mapping[str, str], env: Mapping[str, str] | None = None) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(folder, files, env)
    return [str(problem).replace(f"{folder}/", "") for problem in caught.value.problems]


def test_the_maps_of_included_files_are_added(tmp_path: Path) -> None:
    loaded = load(
        tmp_path,
        {
            "main.yaml": MAIN + "include: [more/*.yaml, '${NAME}.yaml']\nroutes: {r: w/n}\n",
            "more/b.yaml": "version: 1\nmodels: {w/n: {}}\n",
            "more/a.yaml": "vendors: {w: {}}\nroutes: {s: r}\n",
            "extra.yaml": "include: [deep/d.yaml]\n",
            "deep/d.yaml": "vendors: {d: {}}\n",
            "empty.yaml": "# nothing yet\n",
        },
        {"NAME": "extra"},
    )
    assert list(loaded.config.vendors) == ["v", "w", "d"] or set(loaded.config.vendors) == {"v", "w", "d"}
    assert set(loaded.config.models) == {"v/m", "w/n"}
    assert set(loaded.config.routes) == {"r", "s"}
    names = [str(path.relative_to(tmp_path)) for path in loaded.files]
    assert names == ["main.yaml", "more/a.yaml", "more/b.yaml", "extra.yaml", "deep/d.yaml"]


def test_the_order_of_the_files_is_the_order_of_the_names(tmp_path: Path) -> None:
    files = {"main.yaml": MAIN + "include: [a.yaml]\n", "a.yaml": "models: {v/a: {}, v/b: {}}\n"}
    assert list(load(tmp_path, files).config.models) == ["v/m", "v/a", "v/b"]


def test_a_place_in_an_included_file_is_found(tmp_path: Path) -> None:
    files = {"main.yaml": MAIN + "include: [a.yaml]\n", "a.yaml": "vendors:\n  w: {profile: x}\n"}
    position = load(tmp_path, files).locate(("vendors", "w", "profile"))
    assert str(position) == f"{tmp_path}/a.yaml:2:16"


def test_a_mistake_in_an_included_file_is_reported_there(tmp_path: Path) -> None:
    files = {
        "main.yaml": MAIN + "include: [a.yaml]\nroutes: {r: v/x}\n",
        "a.yaml": "models:\n  v/n: {wieght: 1}\n  w/n: {}\nmodels: {}\n",
    }
    assert complaints(tmp_path, files) == [
        "a.yaml:2:9 models.v/n.wieght: unknown key",
        "a.yaml:3:3 models.w/n: no vendor named w; a model of v is written v/w/n",
        "a.yaml:4:1 models: key written twice; first at a.yaml:1:1",
        "main.yaml:5:13 routes.r: no model or route named v/x; did you mean v/n or v/m?",
    ]


def test_a_name_in_two_files_is_refused_with_both_places(tmp_path: Path) -> None:
    files = {
        "main.yaml": MAIN + "include: [a.yaml, b.yaml]\n",
        "a.yaml": "models: {v/m: {}}\nroutes: {r: v/m}\n",
        "b.yaml": "routes:\n  r: v/m\n",
    }
    assert complaints(tmp_path, files) == [
        "a.yaml:1:10 models.v/m: written in two files; first at main.yaml:3:10",
        "b.yaml:2:3 routes.r: written in two files; first at a.yaml:2:10",
    ]


@pytest.mark.parametrize("include", ["[facts.yaml, w.yaml]", "[w.yaml, facts.yaml]"])
def test_a_file_may_add_facts_about_the_models_of_another(tmp_path: Path, include: str) -> None:
    facts = "models:\n  v/m: {price: {input: 1, output: 2}}\n  w/n: {max_output_tokens: 3, context_window: 9}\n"
    files = {
        "main.yaml": MAIN + f"include: {include}\n",
        "facts.yaml": facts,
        "w.yaml": "vendors: {w: {}}\nmodels: {w/n: {deployments: {eu: {}}}}\n",
    }
    loaded = load(tmp_path, files)
    models = loaded.config.models
    assert set(models) == {"v/m", "w/n"}
    assert models["v/m"].price == PriceSection(input=1, output=2)
    assert (models["w/n"].context_window, set(models["w/n"].deployments)) == (9, {"eu"})
    assert str(loaded.locate(("models", "w/n", "context_window"))) == f"{tmp_path}/facts.yaml:3:47"


def test_a_file_may_add_facts_about_a_model_of_which_nothing_is_said(tmp_path: Path) -> None:
    main = "version: 1\nvendors: {v: }\nmodels:\n  v/m:\ninclude: [facts.yaml]\n"
    loaded = load(tmp_path, {"main.yaml": main, "facts.yaml": "models: {v/m: {context_window: 128k}}\n"})
    assert loaded.config.models["v/m"].context_window == 128_000


def test_a_fact_in_two_files_is_refused_with_both_places(tmp_path: Path) -> None:
    main = "version: 1\nvendors: {v: {}}\nmodels: {v/m: {context_window: 9}, v/n: {}}\ninclude: [a.yaml, b.yaml]\n"
    files = {
        "main.yaml": main,
        "a.yaml": "models: {v/m: {context_window: 9}, v/n: {completions: true, price: {input: 1, output: 2}}}\n",
        "b.yaml": "models: {v/m: {}}\n",
    }
    assert complaints(tmp_path, files) == [
        "a.yaml:1:16 models.v/m.context_window: written in two files; first at main.yaml:3:16",
        "a.yaml:1:36 models.v/n: written in two files; first at main.yaml:3:36",
    ]


@pytest.mark.parametrize(
    ("files", "place"),
    [
        ({"main.yaml": MAIN + "include: [main.yaml]\n"}, "main.yaml:4:11"),
        ({"main.yaml": MAIN + "include: ['*.yaml']\n"}, "main.yaml:4:11"),
        (
            {"main.yaml": MAIN + "include: [a.yaml]\n", "a.yaml": "include: [b.yaml]", "b.yaml": "include: [a.yaml]"},
            "b.yaml:1:11",
        ),
        ({"main.yaml": MAIN + "include: [a.yaml]\n", "a.yaml": "include: [x/../main.yaml]", "x/y": ""}, "a.yaml:1:11"),
    ],
)
def test_a_circle_of_includes_is_refused(tmp_path: Path, files: Mapping[str, str], place: str) -> None:
    (told,) = complaints(tmp_path, files)
    assert told.startswith(f"{place} include: circular includes: ")


def test_a_file_reached_twice_is_read_once(tmp_path: Path) -> None:
    files = {
        "main.yaml": MAIN + "include: [a.yaml, '*/*.yaml', b/b.yaml]\n",
        "a.yaml": "include: [b/b.yaml]\n",
        "b/b.yaml": "vendors: {w: {}}\n",
    }
    assert set(load(tmp_path, files).config.vendors) == {"v", "w"}


def test_a_chain_of_includes_has_an_end(tmp_path: Path) -> None:
    files = {"main.yaml": MAIN + "include: [0.yaml]\n"}
    files |= {f"{i}.yaml": f"include: [{i + 1}.yaml]\n" for i in range(30)}
    (told,) = complaints(tmp_path, files)
    assert "more than 10 levels" in told


@pytest.mark.parametrize(
    ("include", "expected"),
    [
        ("[missing.yaml]", "4:11 include: cannot read the file missing.yaml: No such file or directory"),
        ("['${X}.yaml']", "4:11 include.0: the environment variable X is not set"),
        ("a.yaml", "4:10 include: expected a list of paths"),
        ("[1]", "4:11 include.0: expected a path"),
        ('["", "a\\0b"]', "4:11 include.0: expected a path"),
        ("[{}]", "4:11 include.0: expected a path"),
        ("[more]", "4:11 include: cannot read the file more: not a regular file"),
    ],
)
def test_an_include_that_leads_nowhere_is_refused_before_names(tmp_path: Path, include: str, expected: str) -> None:
    files = {"main.yaml": MAIN + f"include: {include}\nroutes: {{r: elsewhere/x}}\n", "more/x": ""}
    assert complaints(tmp_path, files)[0] == f"main.yaml:{expected}"
    assert not any("elsewhere" in told for told in complaints(tmp_path, files))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "server: {port: 1}\n",
            "1:1 server: an included file may only hold vendors, models, routes, teams, version and include",
        ),
        ("defaults: {}\n", "1:1 defaults: an included file may only hold vendors"),
        ("version: 2\n", "1:10 version: must be 1"),
        ("[a]\n", "1:1 expected a mapping"),
        ("models: [a]\n", "1:9 models: expected a mapping"),
        ("a: [\n", "2:1 not YAML: "),
    ],
)
def test_an_included_file_holds_names_only(tmp_path: Path, text: str, expected: str) -> None:
    (told,) = complaints(tmp_path, {"main.yaml": MAIN + "include: [a.yaml]\n", "a.yaml": text})
    assert told.startswith(f"a.yaml:{expected}")


def test_a_map_only_an_included_file_writes_wrongly_is_refused_too(tmp_path: Path) -> None:
    (told,) = complaints(tmp_path, {"main.yaml": MAIN + "include: [a.yaml]\n", "a.yaml": "routes: [a]\n"})
    assert told.startswith("a.yaml:1:9 routes: expected a mapping, found a list; write each route on a line of its own")


def test_a_glob_that_matches_nothing_adds_nothing_until_it_does(tmp_path: Path) -> None:
    loaded = load(tmp_path, {"main.yaml": MAIN + "include: ['teams/*.yaml']\n"})
    assert fingerprint(loaded.sources) == loaded.sources.hashes
    written(tmp_path, {"teams/a.yaml": "vendors: {w: {}}\n"})
    assert fingerprint(loaded.sources) != loaded.sources.hashes


def test_a_file_of_other_keys_is_no_table_and_its_names_stay_in_it(tmp_path: Path) -> None:
    (told,) = complaints(tmp_path, {"main.yaml": MAIN + "include: [a.yaml]\n", "a.yaml": "sk-1: a\nsk-2: b\n"})
    assert told.startswith("a.yaml:1:1 this is no configuration of the gateway: none of its keys is version, server, ")
    assert "sk-" not in told


def test_what_a_reference_named_is_not_shown_when_it_cannot_be_read(tmp_path: Path) -> None:
    (told,) = complaints(tmp_path, {"main.yaml": MAIN + "include: ['${NAME}.yaml']\n"}, {"NAME": "hush"})
    assert told == "main.yaml:4:11 include: cannot read the file ${NAME}.yaml: No such file or directory"
