"""Prices of tokens and budgets, computed alike in both planes.

Money is in whole micros: millionths of a currency unit. A price is micros for a million tokens.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

import msgspec

from caret.contracts.policy import Tier
from caret.foundation.ids import UserId

PRICED_TOKENS: Final = 1_000_000  # the number of tokens that a price is for
# A prompt is truncated to its tier's budget, unless its pool has another one.
MAX_PROMPT_TOKENS: Final = {Tier.FAST: 2_000, Tier.QUALITY: 4_000}
MAX_GENERATED_TOKENS: Final = 512  # by one completion
KEEP_SPEND_S: Final = 40 * 86_400  # Redis keeps a month's total for as long as it may be read


class TierPrices(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Prices of a tier, in micros for a million tokens of a kind; at least 0."""

    prompt: int  # read by the engine
    cached_prompt: int  # found in the engine's prefix cache
    generated: int


class TokenPrices(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    effective_from_ms: int  # Unix milliseconds, a UTC midnight
    tiers: dict[Tier, TierPrices]  # all of them


class BudgetScope(StrEnum):
    TENANT = "tenant"
    TEAM = "team"
    USER = "user"


class HardBudget(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The amount that may be spent in a UTC month. A tenant's budget counts all spending."""

    budget_id: str
    scope: BudgetScope
    limit_micros: int  # at least 1
    # Users whose spending counts, as older control planes write it. It is read for as long as one
    # of them may run, and no longer written (see SpendingLimits).
    users: tuple[UserId, ...] = ()


class SpendingLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    prices: tuple[TokenPrices, ...] = ()  # by effective_from_ms, current ones first
    budgets: tuple[HardBudget, ...] = ()
    # The budgets of teams and users that count a user's spending. Bit n of the little-endian number
    # stands for the nth of `budgets`. Only the tenant's budget applies to users that are not
    # listed. The compact form exists because a gateway decodes it on its event loop (ADR 0003).
    budgets_of: dict[UserId, bytes] = {}


class TokenCounts(msgspec.Struct, frozen=True):
    """Numbers of tokens of a request that are billed."""

    prompt: int
    cached_prompt: int
    generated: int


NOTHING: Final = TokenCounts(0, 0, 0)


def billable_tokens(*, prompt: int, cached: int | None, generated: int) -> TokenCounts:
    """Return the tokens to bill; none unless the engine has generated some.

    `cached` is None if the engine was stopped before it reported its cache. The whole prompt then
    counts as cached, in the customer's favour.
    """
    if generated <= 0:
        return NOTHING
    from_cache = prompt if cached is None else min(cached, prompt)
    return TokenCounts(prompt - from_cache, from_cache, generated)


def cost_micros(prices: TierPrices, tokens: TokenCounts) -> int:
    """Return the cost, rounded up so that a budget is never exceeded by a fraction of a micro."""
    priced = (
        prices.prompt * tokens.prompt
        + prices.cached_prompt * tokens.cached_prompt
        + prices.generated * tokens.generated
    )
    return -(-priced // PRICED_TOKENS)


def max_cost_micros(
    prices: TierPrices, tier: Tier, *, max_tokens: int, prompt_tokens: int | None = None
) -> int:
    """Return the highest possible cost of a request, which is reserved; at least 1.

    `prompt_tokens` is the budget of a prompt, or None for the tier's.

    If the cache costs more than reading, which no price list should say, the cache price counts.
    """
    dearest = max(prices.prompt, prices.cached_prompt)
    most = TokenCounts(prompt_tokens or MAX_PROMPT_TOKENS[tier], 0, max_tokens)
    return max(1, cost_micros(TierPrices(dearest, dearest, prices.generated), most))


def prices_at(spending: SpendingLimits, now_ms: int) -> TokenPrices | None:
    """Return the prices in effect, or None if nothing has a price yet."""
    effective_prices = [prices for prices in spending.prices if prices.effective_from_ms <= now_ms]
    return effective_prices[-1] if effective_prices else None


def encode_indexes(indexes: Iterable[int]) -> bytes:
    """Encode indexes of budgets as a bit set (see SpendingLimits)."""
    number = sum(1 << index for index in frozenset(indexes))
    return number.to_bytes((number.bit_length() + 7) // 8, "little")


def decode_indexes(encoded_indexes: bytes, *, num_indexes: int) -> tuple[int, ...]:
    """Decode a bit set in ascending order; ignore indexes from `num_indexes` on."""
    number = int.from_bytes(encoded_indexes, "little")
    return tuple(index for index in range(num_indexes) if number >> index & 1)


def spend_key(tenant_id: str, budget_id: str, month: str) -> str:
    """Return the key of the Redis hash for a budget's spending in a month such as 2026-11.

    Field `used` is the sum that gateways have spent or leased. The control plane raises it to the
    ledger's total, and adds the difference to `raised`. So a gateway that reports this spending
    later does not count it again. The other fields are the gateways' leases. The part of the key in
    braces selects the node of a Redis cluster.
    """
    return f"caret:spend:{{{tenant_id}}}:{budget_id}:{month}"
