"""The result of a document's verification, for pages."""

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class VerificationResult:
    kind: str  # kind of document
    facts: list[tuple[str, str]]
    reason: str = ""  # reason of the failure; "": valid

    @property
    def is_good(self) -> bool:
        return not self.reason


def signed_fields(document: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the signed fields, with the names and values of the document."""
    return [
        (name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for name, value in sorted(document.items())
    ]
