"""What tokens cost and how much may be spent: the same arithmetic on both planes.

Money is whole micros, millionths of a currency's unit; a price is micros for a million tokens.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

import msgspec

from caret.contracts.policy import Tier
from caret.foundation.ids import UserId

PRICED_TOKENS: Final = 1_000_000  # a price is for so many
# A prompt is cut to its tier's budget.
MAX_PROMPT_TOKENS: Final = {Tier.FAST: 2_000, Tier.QUALITY: 4_000}
MAX_GENERATED_TOKENS: Final = 512  # by one completion
KEEP_SPEND_S: Final = 40 * 86_400  # Redis keeps a month's count until nobody asks for it any more


class TierPrices(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Micros for a million tokens of a kind; at least 0."""

    prompt: int  # read by the engine
    cached_prompt: int  # found in its prefix cache
    generated: int


class TokenPrices(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    effective_from_ms: int  # Unix milliseconds, a UTC midnight
    tiers: dict[Tier, TierPrices]  # all of them


class BudgetScope(StrEnum):
    TENANT = "tenant"
    TEAM = "team"
    USER = "user"


class HardBudget(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """So much may be spent in a UTC month, and then no more. A tenant's counts everybody's."""

    budget_id: str
    scope: BudgetScope
    limit_micros: int  # at least 1
    # Whose spending counts, as older control planes say it: read for as long as one may be running,
    # and written no more (see Spending.budgets_of).
    users: tuple[UserId, ...] = ()


class SpendingLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    prices: tuple[TokenPrices, ...] = ()  # by effective_from_ms: the one in force, then later ones
    budgets: tuple[HardBudget, ...] = ()
    # Which budgets of teams and users count what a user spends: bit n of the little-endian number
    # is for the nth of `budgets`. Who is not here has the tenant's alone. Each user stands here
    # once, as bytes, because a gateway reads this on its event loop (ADR 0003).
    budgets_of: dict[UserId, bytes] = {}


class TokenCounts(msgspec.Struct, frozen=True):
    """What of a request is paid for."""

    prompt: int
    cached_prompt: int
    generated: int


NOTHING: Final = TokenCounts(0, 0, 0)


def billable_tokens(*, prompt: int, cached: int | None, generated: int) -> TokenCounts:
    """Nothing, as long as the engine has not answered. What it did not tell about its cache (None:
    it was stopped before) counts as cached: a doubt is in the customer's favour."""
    if generated <= 0:
        return NOTHING
    from_cache = prompt if cached is None else min(cached, prompt)
    return TokenCounts(prompt - from_cache, from_cache, generated)


def cost_micros(prices: TierPrices, tokens: TokenCounts) -> int:
    """Rounded up, so that a budget is reached a fraction of a micro early and never late."""
    priced = (
        prices.prompt * tokens.prompt
        + prices.cached_prompt * tokens.cached_prompt
        + prices.generated * tokens.generated
    )
    return -(-priced // PRICED_TOKENS)


def max_cost_micros(prices: TierPrices, tier: Tier, *, max_tokens: int) -> int:
    """That a request may cost, and reserves; 1 at least. Where the cache costs more than reading,
    which no price list should say, that is the most."""
    dearest = max(prices.prompt, prices.cached_prompt)
    most = TokenCounts(MAX_PROMPT_TOKENS[tier], 0, max_tokens)
    return max(1, cost_micros(TierPrices(dearest, dearest, prices.generated), most))


def prices_at(spending: SpendingLimits, now_ms: int) -> TokenPrices | None:
    """None: nothing is priced yet."""
    begun = [prices for prices in spending.prices if prices.effective_from_ms <= now_ms]
    return begun[-1] if begun else None


def encode_indexes(places: Iterable[int]) -> bytes:
    """As in `Spending.budgets_of`."""
    number = sum(1 << place for place in frozenset(places))
    return number.to_bytes((number.bit_length() + 7) // 8, "little")


def read_places(written: bytes, *, num_places: int) -> tuple[int, ...]:
    """In order. What is said of places that there are not is passed over."""
    number = int.from_bytes(written, "little")
    return tuple(place for place in range(num_places) if number >> place & 1)


def spend_key(tenant_id: str, budget_id: str, month: str) -> str:
    """Return the key of the hash in which Redis counts a budget in a month such as 2026-11.

    Its field `used` is what is spent or leased by gateways. The control plane raises it to what the
    ledger has, and adds to `raised` by how much: a gateway that tells of this spending later does
    not count it again. The other fields are the gateways' leases. The part of the key in braces
    decides the node of a cluster.
    """
    return f"caret:spend:{{{tenant_id}}}:{budget_id}:{month}"
