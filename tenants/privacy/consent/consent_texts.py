"""The versions of the texts that tenants and users consent to.

A published text is never edited. A changed text is a new version, and users who consented to the
previous version must consent again.
"""

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

from tenants.base.errors import InvalidValue

_FOLDER: Final = Path(__file__).parent / "wordings"


class ConsentKind(StrEnum):
    """The kind of consent that a receipt is about."""

    CONTENT_CAPTURE = "content_capture"  # content may be stored
    TRAINING = "training"  # stored content may train models


@dataclass(frozen=True, slots=True)
class ConsentText:
    version: str
    text: str

    @property
    def sha256(self) -> str:
        """SHA-256 of the UTF-8 text, in hex."""
        return hashlib.sha256(self.text.encode()).hexdigest()


# The versions of the current texts. The tenant's text covers both kinds.
TENANT_CONSENT_VERSION: Final = "tenant-1"
USER_CONSENT_VERSIONS: Final = MappingProxyType(
    {ConsentKind.CONTENT_CAPTURE: "content-capture-1", ConsentKind.TRAINING: "training-1"}
)


@cache
def get_consent_text(version: str) -> ConsentText:
    """Read a text. `version` must be one of the published versions, never input."""
    return ConsentText(version, (_FOLDER / f"{version}.txt").read_text(encoding="utf-8").strip())


def require_current_version(
    field: str, *, accepted_versions: Collection[str], current: str
) -> None:
    """Check that the current version of a text is among the accepted ones. Raises InvalidValue."""
    if current not in accepted_versions:
        raise InvalidValue(
            field,
            "Read the consent text {current}, and send its version if you consent.",
            current=current,
        )
