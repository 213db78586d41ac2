"""The engine's flags for each tier and hardware, and the page that documents them."""

from caret.contracts.policy import Tier
from caret.local.engines.profiles import (
    Hardware,
    ProfileFlag,
    find_profile,
    read_profile_flags,
)
from caret.local.paths import REPOSITORY

PAGE = REPOSITORY / "platform" / "docs" / "engine-profiles.md"


def test_each_profile_limits_the_batch_and_states_no_flag_twice() -> None:
    for tier in Tier:
        for hardware in Hardware:
            names = [flag.flag for flag in find_profile(tier, hardware)]
            assert len(names) == len(set(names))
            assert "--max-num-seqs" in names


def test_the_page_lists_all_flags_with_their_reasons() -> None:
    header = ["| flag | profiles | reason |", "| --- | --- | --- |"]
    table = "\n".join(header + [_row(flag) for flag in read_profile_flags()])

    assert table in PAGE.read_text(), f"The table of {PAGE.name} must be:\n{table}"


def _row(flag: ProfileFlag) -> str:
    profiles = " ".join(part for part in (flag.profile, flag.hardware) if part) or "all"
    return f"| `{' '.join(flag.arguments)}` | {profiles} | {flag.reason} |"
