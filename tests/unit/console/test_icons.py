"""The sprite `icons.svg` contains every icon that the console uses."""

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import console
from console.layout.navigation import ACCOUNT_ITEMS, SECTIONS

CONSOLE = Path(console.__file__).parent
SPRITE = ElementTree.parse(CONSOLE / "static" / "icons.svg").getroot()  # noqa: S314  # our own file
NAMES = {symbol.get("id") for symbol in SPRITE}
TEMPLATES = sorted((CONSOLE / "templates").rglob("*.html"))


def test_every_area_of_the_navigation_has_an_icon() -> None:
    areas = {item.area for section in SECTIONS for item in section.items}

    assert areas | {item.area for item in ACCOUNT_ITEMS} <= NAMES


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: str(path.relative_to(CONSOLE)))
def test_templates_name_existing_icons(path: Path) -> None:
    icon_names = re.findall(r'<c-icon name="([a-z-]+)"', path.read_text())

    assert set(icon_names) <= NAMES
