"""Prices of tokens, and budgets. Control plane and data plane compute costs with this module.

Money is in whole micros: millionths of a currency unit. A price is in micros per million tokens.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

import msgspec

from caret.contracts.policy import Tier
from caret.foundation.ids import UserId

PRICED_TOKENS: Final = 1_000_000  # the number of tokens that a price is for
# A prompt is truncated to its tier's token budget, unless its pool has another token budget.
MAX_PROMPT_TOKENS: Final = {Tier.FAST: 2_000, Tier.QUALITY: 4_000}
MAX_GENERATED_TOKENS: Final = 512  # by one completion in any mode except chat
MAX_CHAT_TOKENS: Final = 4_096  # by one completion in chat mode: enough for a file of code
KEEP_SPEND_S: Final = 40 * 86_400  # Redis keeps a month's spending longer than the month lasts


class TierPrices(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Prices of a tier or model, in micros per million tokens of each kind; at least 0."""

    prompt: int  # read by the engine
    cached_prompt: int  # found in the engine's prefix cache
    generated: int


class TokenPrices(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    effective_from_ms: int  # Unix milliseconds, a UTC midnight
    tiers: dict[Tier, TierPrices]  # has all tiers
    model_prices: dict[str, TierPrices] = {}  # of models that do not have their tier's prices

    def find_prices(self, tier: Tier, *, model: str) -> TierPrices:
        return self.model_prices.get(model) or self.tiers[tier]


class BudgetScope(StrEnum):
    TENANT = "tenant"
    TEAM = "team"
    USER = "user"


class HardBudget(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The amount that may be spent in a UTC month; gateways stop completions when it is spent.

    A budget whose scope is the tenant counts all spending of the tenant.
    """

    budget_id: str
    scope: BudgetScope
    limit_micros: int  # at least 1
    # Users whose spending counts. Only older control planes write this field (see SpendingLimits).
    # Gateways still read it, because an older control plane may run during an upgrade.
    users: tuple[UserId, ...] = ()


class SpendingLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    prices: tuple[TokenPrices, ...] = ()  # in ascending order of effective_from_ms
    budgets: tuple[HardBudget, ...] = ()
    # For each user, the budgets of the user and of the user's teams. Bit n of the little-endian
    # number stands for `budgets[n]`. Users without such a budget are not listed. The tenant's
    # own budget has no bit, because it applies to all users. The form is compact, because decoding
    # it blocks the event loop of a gateway (ADR 0003).
    budgets_of: dict[UserId, bytes] = {}


class TokenCounts(msgspec.Struct, frozen=True):
    """Numbers of tokens of a request that are billed."""

    prompt: int  # read by the engine, without the cached ones
    cached_prompt: int  # found in the engine's prefix cache
    generated: int


NOTHING: Final = TokenCounts(0, 0, 0)


def billable_tokens(*, prompt: int, cached: int | None, generated: int) -> TokenCounts:
    """Return the tokens to bill. If the engine has generated nothing, nothing is billed.

    `prompt` includes the cached tokens. `cached` is None if the engine was stopped before it
    reported their number. The whole prompt then counts as cached, because cached tokens usually
    cost less.
    """
    if generated <= 0:
        return NOTHING
    from_cache = prompt if cached is None else min(cached, prompt)
    return TokenCounts(prompt - from_cache, from_cache, generated)


def cost_micros(prices: TierPrices, tokens: TokenCounts) -> int:
    """Return the cost, rounded up so that a budget is never exceeded by a fraction of a micro."""
    cost_millionths = (  # of a micro
        prices.prompt * tokens.prompt
        + prices.cached_prompt * tokens.cached_prompt
        + prices.generated * tokens.generated
    )
    return -(-cost_millionths // PRICED_TOKENS)  # division that rounds up


def max_cost_micros(
    prices: TierPrices, tier: Tier, *, max_tokens: int, prompt_tokens: int | None = None
) -> int:
    """Return the highest possible cost of a request, which gateways reserve before it runs.

    It is at least 1, so that a budget with nothing left also stops requests whose tokens are free.
    `max_tokens` limits the generated tokens. `prompt_tokens` is the token budget of a prompt; None:
    the tier's. If cached tokens cost more than other prompt tokens, their price is used for the
    whole prompt.
    """
    prompt_price = max(prices.prompt, prices.cached_prompt)
    max_counts = TokenCounts(prompt_tokens or MAX_PROMPT_TOKENS[tier], 0, max_tokens)
    max_prices = TierPrices(prompt_price, prompt_price, prices.generated)
    return max(1, cost_micros(max_prices, max_counts))


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
    return tuple(index for index in range(num_indexes) if (number >> index) & 1)


def spend_key(tenant_id: str, budget_id: str, month: str) -> str:
    """Return the Redis key of the hash for a budget's spending in a month such as 2026-11.

    Its fields, with amounts in micros:

    - `used`: the sum that gateways have spent or leased. If the ledger's total is higher, the
      control plane raises `used` to that total.
    - `raised`: the sum of these increases. An increase covers spending that a gateway has not
      reported yet. When the gateway reports this spending, the amount is subtracted from `raised`,
      and is not added to `used` a second time.
    - `gateway:NAME`, one for each gateway: its lease (see the gateway's redis_lease_store).

    The part of the key in braces selects the node of a Redis cluster.
    """
    return f"caret:spend:{{{tenant_id}}}:{budget_id}:{month}"
