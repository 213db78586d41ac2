"""How many tokens of what a prompt may hold. Pure arithmetic.

    |<----------------------- tier's budget ----------------------->|
    | files, at most 35% | suffix, at most 25% | prefix: all the rest |

What one part leaves over goes to the prefix, and what that leaves over to the suffix: the text
near the cursor is cut last.
"""

from dataclasses import dataclass
from typing import Final

from caret.contracts.policy import Tier

PROMPT_TOKENS: Final = {Tier.FAST: 2_000, Tier.QUALITY: 4_000}
_FILES_SHARE: Final = 0.35
_SUFFIX_SHARE: Final = 0.25


@dataclass(frozen=True, slots=True)
class Budget:
    files_tokens: int
    suffix_tokens: int
    prefix_tokens: int


def share_out(total: int, *, files: int, suffix: int, prefix: int) -> Budget:
    """Tokens for each part, given how many each would like; together never more than `total`."""
    files_tokens = min(files, int(total * _FILES_SHARE), total)
    suffix_tokens = min(suffix, int(total * _SUFFIX_SHARE), total - files_tokens)
    prefix_tokens = min(prefix, total - files_tokens - suffix_tokens)
    spare = total - files_tokens - suffix_tokens - prefix_tokens
    suffix_tokens = min(suffix, suffix_tokens + spare)
    spare = total - files_tokens - suffix_tokens - prefix_tokens
    files_tokens = min(files, files_tokens + spare)
    return Budget(files_tokens, suffix_tokens, prefix_tokens)
