"""Whether a document is as it was signed, as pages say it."""

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class VerificationResult:
    kind: str  # of document
    facts: list[tuple[str, str]]
    reason: str = ""  # it is not good; "": it is

    @property
    def is_good(self) -> bool:
        return not self.reason


def signed_fields(document: dict[str, Any]) -> list[tuple[str, str]]:
    """As they were signed: names and values are the document's own."""
    return [
        (name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for name, value in sorted(document.items())
    ]
