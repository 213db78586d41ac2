"""Engine profiles: vLLM's flags for a tier on a kind of hardware.

PROFILES_FILE contains the flags, with a reason for each. The Helm chart reads the same file.
"""

from enum import StrEnum
from functools import cache
from typing import Final

import msgspec

from caret.contracts.policy import Tier
from caret.local.paths import REPOSITORY

PROFILES_FILE: Final = REPOSITORY / "platform/deploy/helm/caret/engine-profiles.json"
QUANTIZATION_FLAG: Final = "--quantization"
SPECULATION_FLAG: Final = "--speculative-config"


class Hardware(StrEnum):
    CPU = "cpu"
    GPU = "gpu"


class ProfileFlag(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    flag: str
    reason: str
    value: str | None = None  # None: the flag takes no value
    profile: Tier | None = None  # None: in both profiles
    hardware: Hardware | None = None  # None: on both kinds of hardware

    def is_part_of(self, tier: Tier, hardware: Hardware) -> bool:
        return self.profile in (None, tier) and self.hardware in (None, hardware)

    @property
    def arguments(self) -> tuple[str, ...]:
        return (self.flag,) if self.value is None else (self.flag, self.value)


class _ProfilesFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    flags: tuple[ProfileFlag, ...]


@cache
def read_profile_flags() -> tuple[ProfileFlag, ...]:
    """Return the flags of all profiles."""
    return msgspec.json.decode(PROFILES_FILE.read_bytes(), type=_ProfilesFile).flags


def find_profile(tier: Tier, hardware: Hardware) -> tuple[ProfileFlag, ...]:
    return tuple(flag for flag in read_profile_flags() if flag.is_part_of(tier, hardware))


def find_speculation() -> ProfileFlag:
    """Return the flag for speculative decoding, for an engine of any profile and hardware."""
    return next(flag for flag in read_profile_flags() if flag.flag == SPECULATION_FLAG)
