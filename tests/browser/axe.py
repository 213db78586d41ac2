"""What stands in the way of somebody who uses a page otherwise than by eye and mouse."""

from typing import Any, Final

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

_AXE: Final = Axe()
_SERIOUS: Final = ("serious", "critical")
_VIOLATIONS: Final = {"resultTypes": ["violations"]}
# By name: of the tag `cat.color` there is a rule of AAA, too, which is off unless asked for.
_OF_COLOUR: Final = {"runOnly": ["color-contrast", "link-in-text-block"]}


def serious(tab: Page) -> list[str]:
    """Each rule that is broken, with where."""
    return _broken(tab, _VIOLATIONS)


def serious_of_colour(tab: Page) -> list[str]:
    """As `serious`, of the rules that another scheme of colours can break."""
    return _broken(tab, _VIOLATIONS | _OF_COLOUR)


def _broken(tab: Page, options: dict[str, Any]) -> list[str]:
    violations = _AXE.run(tab, options=options).response["violations"]
    return [
        f"{violation['id']}: {node['html'][:200]}"
        for violation in violations
        if violation["impact"] in _SERIOUS
        for node in violation["nodes"]
    ]
