"""What stands in the way of somebody who uses a page otherwise than by eye and mouse."""

from typing import Final

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

_AXE: Final = Axe()
_SERIOUS: Final = ("serious", "critical")


def serious(tab: Page) -> list[str]:
    """Each rule that is broken, with where."""
    violations = _AXE.run(tab).response["violations"]
    return [
        f"{violation['id']}: {node['html'][:200]}"
        for violation in violations
        if violation["impact"] in _SERIOUS
        for node in violation["nodes"]
    ]
