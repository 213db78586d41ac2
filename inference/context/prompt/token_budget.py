"""How many tokens of what a prompt may hold. Pure arithmetic.

    |<------------------------ tier's budget ------------------------>|
    | prefix, near the cursor: 40% | suffix 20% | files 30% | found 10% |

These are claims: nobody gets less than its own while it needs it and there is room for all claims.
What one leaves over is for whoever needs more, in the order below; so what is cut first is what was
found by retrieval, then other files, then the suffix, and of the prefix first what is far from the
cursor and last what is near. Where a model's context is smaller than the tier's budget, the claims
themselves are met in that order.
"""

from dataclasses import dataclass
from typing import Final

from caret.contracts.policy import Tier

PROMPT_TOKENS: Final = {Tier.FAST: 2_000, Tier.QUALITY: 4_000}
# What an experiment may give away at most: without text before the cursor there is no completion.
MIN_PREFIX_SHARE: Final = 0.25


@dataclass(frozen=True, slots=True)
class TokenShares:
    """Of the tier's budget, 0 to 1; the rest is the near prefix's."""

    suffix: float = 0.20
    files: float = 0.30
    snippets: float = 0.10

    @property
    def prefix(self) -> float:
        return 1 - self.suffix - self.files - self.snippets


@dataclass(frozen=True, slots=True)
class TokenBudget:
    """Tokens: wanted, or allowed."""

    prefix: int
    suffix: int
    files: int
    snippets: int

    @property
    def total(self) -> int:
        return self.prefix + self.suffix + self.files + self.snippets


def allocate(total: int, wanted: TokenBudget, *, shares: TokenShares, nominal: int) -> TokenBudget:
    """Tokens for each part, never more than it wants, together never more than `total`.

    `nominal`: the tier's budget, of which the shares are shares.
    """
    wants = (wanted.prefix, wanted.suffix, wanted.files, wanted.snippets)
    portions = (shares.prefix, shares.suffix, shares.files, shares.snippets)
    claims = [min(want, int(nominal * share)) for want, share in zip(wants, portions, strict=True)]
    granted = _in_turn(total, claims)
    more = _in_turn(
        total - sum(granted), [want - has for want, has in zip(wants, granted, strict=True)]
    )
    return TokenBudget(*(has + added for has, added in zip(granted, more, strict=True)))


def _in_turn(total: int, wants: list[int]) -> list[int]:
    granted: list[int] = []
    for want in wants:
        granted.append(min(want, total - sum(granted)))
    return granted
