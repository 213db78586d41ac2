"""Caret's alerting rules and dashboard, as files."""

import json
from dataclasses import dataclass
from typing import Final

from caret.local.paths import REPOSITORY

MONITORING: Final = REPOSITORY / "platform" / "deploy" / "monitoring"


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    expressions: tuple[str, ...]


def read_panels() -> list[Panel]:
    """Return the panels in the dashboard's order; headings have no expressions."""
    return [
        Panel(panel["title"], tuple(target["expr"] for target in panel.get("targets", ())))
        for panel in json.loads((MONITORING / "dashboard.json").read_text())["panels"]
    ]
