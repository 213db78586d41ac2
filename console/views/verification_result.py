"""The result of verifying a signed document, for pages."""

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class VerificationResult:
    kind: str  # kind of document
    facts: list[tuple[str, str]]  # the signed fields, as names and values; empty after a failure
    reason: str = ""  # why the verification failed; "": the document is valid

    @property
    def is_good(self) -> bool:
        return not self.reason


def signed_fields(document: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the names and values of the fields, sorted by name. Values are texts or JSON."""
    return [
        (name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for name, value in sorted(document.items())
    ]
