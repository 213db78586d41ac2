"""Divides the token budget of a prompt among its parts. Pure arithmetic.

    |<-------------------------- token budget --------------------------->|
    | prefix, near the cursor: 40% | suffix 20% | files 30% | snippets 10% |

These shares are guaranteed: a part gets its share if it needs the tokens and there is room for all
shares. Unused tokens go to the other parts in the order above. Snippets are thus cut first, then
other files, then the suffix, and last the prefix, beginning far from the cursor. If a model's
context is smaller than the token budget, the shares are granted in the same order.
"""

from dataclasses import dataclass
from typing import Final

from caret.contracts.policy import Tier

# The defaults; a pool may have another budget, from MIN_BUDGET_TOKENS to MAX_BUDGET_TOKENS.
PROMPT_TOKENS: Final = {Tier.FAST: 2_000, Tier.QUALITY: 4_000}
MIN_BUDGET_TOKENS: Final = 500
MAX_BUDGET_TOKENS: Final = {Tier.FAST: 4_000, Tier.QUALITY: 8_000}
# The minimum in experiments: without text before the cursor there is no completion.
MIN_PREFIX_SHARE: Final = 0.25


@dataclass(frozen=True, slots=True)
class TokenShares:
    """Shares of the budget, 0 to 1. The rest belongs to the prefix."""

    suffix: float = 0.20
    files: float = 0.30
    snippets: float = 0.10

    @property
    def prefix(self) -> float:
        return 1 - self.suffix - self.files - self.snippets


@dataclass(frozen=True, slots=True)
class TokensByPart:
    """Token counts of the parts: either their demands, or the tokens that they get."""

    prefix: int
    suffix: int
    files: int
    snippets: int

    @property
    def total(self) -> int:
        return self.prefix + self.suffix + self.files + self.snippets


def allocate(
    total: int, demand: TokensByPart, *, shares: TokenShares, nominal: int
) -> TokensByPart:
    """Return the tokens of each part: at most its demand, and at most `total` for all parts.

    `nominal` is the number of tokens to which the shares apply: the token budget without pinned
    files. `total` can be smaller, for example because the model's context is small.
    """
    demands = (demand.prefix, demand.suffix, demand.files, demand.snippets)
    portions = (shares.prefix, shares.suffix, shares.files, shares.snippets)
    claims = [
        min(demand_of_part, int(nominal * share))
        for demand_of_part, share in zip(demands, portions, strict=True)
    ]
    granted = _grant_in_order(total, claims)
    extra_tokens = _grant_in_order(
        total - sum(granted),
        [demand_of_part - grant for demand_of_part, grant in zip(demands, granted, strict=True)],
    )
    return TokensByPart(
        *(grant + extra for grant, extra in zip(granted, extra_tokens, strict=True))
    )


def _grant_in_order(total: int, demands: list[int]) -> list[int]:
    """Grant the demands one after the other, until `total` is used up."""
    granted: list[int] = []
    for demand in demands:
        granted.append(min(demand, total - sum(granted)))
    return granted
