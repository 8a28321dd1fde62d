"""The whole page: one valid document whatever the names in it, and no script but its own may run."""

from dataclasses import replace

from proxy.admin.page import render
from proxy.admin.page_assets import SCRIPT, STYLE
from proxy.admin.page_model import PageQuery
from tests.proxy.admin.kit import HOSTILE, failed, page, status
from tests.proxy.admin.markup.test_html import Reader, read


def elements(reader: Reader) -> list[str]:
    return [tag for tag, _ in reader.elements]


def test_hostile_names_are_text_and_change_no_element() -> None:
    honest = read(render(page("wo/rd", PageQuery(text="m"))))
    found = replace(failed(1, HOSTILE), request_id=HOSTILE, team=HOSTILE, model=HOSTILE, code=HOSTILE, surface=HOSTILE)
    hostile = status(HOSTILE)
    shown = page(query=PageQuery(vendor="", text="m"), status=replace(hostile, failed=(found, failed(2, HOSTILE))))
    made = render(replace(shown, warnings=[]))
    assert elements(read(made)) == elements(honest)
    assert made.count("alert(1)") > 5
    assert "<script>alert" not in made
    assert "\u202e" not in made
    made.encode()


def test_every_part_has_its_landmark_heading_and_link() -> None:
    reader = read(render(page()))
    names = [dict(attributes).get("id") for tag, attributes in reader.elements if tag == "section"]
    links = [dict(attributes)["href"] for tag, attributes in reader.elements if tag == "a"]
    assert names == ["overview", "hour", "deployments", "routes", "failures", "limits", "workers", "reloads", "models"]
    assert [link for link in links if link and link.startswith("#")][1:] == [f"#{name}" for name in names]
    assert {"header", "nav", "main", "h1"} <= set(elements(reader))
    assert [dict(attributes).get("lang") for tag, attributes in reader.elements if tag == "html"] == ["en"]


def test_the_script_and_the_style_are_the_only_ones() -> None:
    made = render(page())
    assert made.count("<script") == made.count("<style") == 1
    assert f"<script>{SCRIPT}</script>" in made
    assert f"<style>{STYLE}</style>" in made
    attributes = {name for _, each in read(made).elements for name, _ in each}
    assert not {name for name in attributes if name.startswith("on") or name == "style"}


def test_nothing_is_loaded_from_elsewhere() -> None:
    made = render(page())
    assert "http://" not in made
    assert "https://" not in made
    assert "src=" not in made
