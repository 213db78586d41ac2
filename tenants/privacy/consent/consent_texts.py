"""What exactly is agreed to. A wording that was published is never edited: another one is another
version, and who has agreed to the one before is asked anew."""

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

from tenants.base.errors import InvalidValue

_FOLDER: Final = Path(__file__).parent / "wordings"


class ConsentKind(StrEnum):
    """What a receipt is about."""

    TELEMETRY = "telemetry"  # content is kept
    TRAINING = "training"  # what is kept may train models


@dataclass(frozen=True, slots=True)
class ConsentText:
    version: str
    text: str

    @property
    def sha256(self) -> str:
        """Of the text in UTF-8, as hex digits."""
        return hashlib.sha256(self.text.encode()).hexdigest()


TENANT_CONSENT_TEXT: Final = "tenant-1"  # of both kinds
USER_WORDINGS: Final = MappingProxyType(
    {ConsentKind.TELEMETRY: "telemetry-1", ConsentKind.TRAINING: "training-1"}
)


@cache
def get_consent_text(version: str) -> ConsentText:
    return ConsentText(version, (_FOLDER / f"{version}.txt").read_text().strip())


def require_current(field: str, *, asked: str, current: str) -> None:
    """Raises Invalid unless the wording that somebody has read is the one in force."""
    if asked != current:
        raise InvalidValue(
            field,
            "Read the consent text {current}, and send its version if you consent.",
            current=current,
        )
