"""The sprite `icons.svg` contains the icons of the navigations and of all templates."""

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import console
from console.layout.navigation import ACCOUNT_ITEMS, SECTIONS
from console.operator_admin import site

CONSOLE = Path(console.__file__).parent
SPRITE = ElementTree.parse(CONSOLE / "static" / "icons.svg").getroot()  # noqa: S314  # our own file
NAMES = {symbol.get("id") for symbol in SPRITE}
TEMPLATES = sorted((CONSOLE / "templates").rglob("*.html"))
# `<c-icon name="...">`, or the attribute `icon="..."` of another component.
ICON_ATTRIBUTE = re.compile(r'<c-icon name="([^"]*)"|\sicon="([^"]*)"')
TEMPLATE_TAG = re.compile(r"{%.*?%}")  # such as {% if ... %} between two names


def test_every_area_of_the_navigation_has_an_icon() -> None:
    areas = {item.area for section in SECTIONS for item in section.items}

    assert areas | {item.area for item in ACCOUNT_ITEMS} <= NAMES


def test_every_page_in_the_operators_navigation_has_an_icon() -> None:
    assert {url_name for _, url_name, _ in site._NAVIGATION} == set(site._ICONS)
    assert set(site._ICONS.values()) <= NAMES


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: str(path.relative_to(CONSOLE)))
def test_templates_name_existing_icons(path: Path) -> None:
    # Each match has one of the two groups; the other one is empty.
    attributes = ["".join(groups) for groups in ICON_ATTRIBUTE.findall(path.read_text())]
    icon_names = {name for text in attributes for name in TEMPLATE_TAG.sub(" ", text).split()}

    assert icon_names <= NAMES
