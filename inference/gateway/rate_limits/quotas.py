"""Quotas: limits on requests per tenant, user and key, and on tokens per tenant.

Rates count the actions of people, not the requests of their editors. An action costs ten units. The
following requests cost one unit, so that no request is free:

- Requests that no user waits for: warm-ups, and as many prefetches as there were recent actions. A
  client that marks all its requests as prefetches has no actions, so it pays the full price.
- A request at the position of the previous one, within REPEAT_S: editors request several
  suggestions. This does not apply to chats.
- A request that showed nothing and did not finish: superseded, cancelled, shed or failed.

A token quota counts all tokens of prompts and completions, because it limits cost. At first, the
estimated tokens and the maximum cost are reserved (see `budget_reservation`). When the request
ends, the numbers in its request trace replace them.
"""

from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from caret.contracts.policy import Mode, PolicyLimits, RateLimit, Tier, Trigger
from caret.contracts.pricing import MAX_CHAT_TOKENS, MAX_PROMPT_TOKENS
from caret.foundation.clock import Clock
from caret.foundation.ids import TenantId
from inference.completion.request import CompletionRequest, Principal
from inference.completion.request_trace import RequestTrace
from inference.completion.response_writer import ClientDisconnected
from inference.errors import CompletionDropped, TooManyRequests
from inference.gateway.rate_limits.budget_reservation import KIND as SPEND
from inference.gateway.rate_limits.budget_reservation import (
    plan_reservation,
    raise_budget_exhausted,
)
from inference.gateway.rate_limits.leased_bucket import BucketSpec
from inference.gateway.rate_limits.leases import Charge, Leases, RateLimitExceeded, SpendRequest

ACTION: Final = 10  # units that an action costs
REPEAT_S: Final = 2.0
# After a suggestion is seen, editors soon prefetch the next one: one prefetch for each action.
PREFETCH_S: Final = 60.0  # after the last action, a prefetch may be cheap
MAX_PREFETCHES: Final = 20  # cheap prefetches that can accumulate
# Code has more than three characters per token.
_CHARS_PER_TOKEN: Final = 3
_FIRST_ACTIONS: Final = 4  # actions that the first lease of a rate covers
_FIRST_TOKENS: Final = 20_000  # tokens that the first lease of a token quota covers
_MAX_HOLDERS: Final = 20_000  # users and service keys that are remembered
_MESSAGES: Final = {
    "tenant": "Too many requests of this tenant; try again in a moment.",
    "user": "Too many requests of this user; try again in a moment.",
    "key": "Too many requests with this key; try again in a moment.",
}


@dataclass(slots=True)
class _RecentUsage:
    """The recent requests of one user or service key on this gateway."""

    position_hash: int = 0  # of the last request
    requested_s: float = float("-inf")  # time of the last request
    last_action_s: float = float("-inf")  # time of the last action
    num_prefetches: int = 0  # prefetches that are still allowed for one unit each


class Quotas:
    def __init__(
        self,
        leases: Leases,
        clock: Clock,
        *,
        prompt_tokens: Mapping[Tier, int] = MAX_PROMPT_TOKENS,
    ) -> None:
        """`prompt_tokens` is the largest token budget of a prompt in each tier."""
        self._prompt_tokens = prompt_tokens
        self.num_rejected: Counter[str] = Counter()  # by the bucket's kind (see BucketSpec)
        self.leases: Final = leases
        self._clock = clock
        # By the ID of the user or service key, the most recently used last:
        self._recent: OrderedDict[str, _RecentUsage] = OrderedDict()

    @asynccontextmanager
    async def charge(
        self,
        principal: Principal,
        request: CompletionRequest,
        trace: RequestTrace,
        *,
        model: str = "",
    ) -> AsyncIterator[None]:
        """Charge the request to its rate limits, token quotas and budgets, and settle on exit.

        `model` is the model that will answer. It may have a price of its own. May wait for Redis
        (see Leases).

        The codes of TooManyRequests are `rate_limited`, `token_quota_exceeded` and
        `budget_exceeded`. CompletionDropped means that a hard budget is exhausted. Raises
        TooManyRequests, CompletionDropped.
        """
        limits = principal.snapshot.policy.limits
        units = self._estimate_units(principal, request)
        rates = self._build_rate_requests(limits, principal, units)
        token_requests = self._build_token_requests(limits, principal, request)
        budget = plan_reservation(
            principal,
            request,
            now_ms=self._clock.now_ms(),
            max_prompt_tokens=self._prompt_tokens[request.tier],
            model=model,
        )
        # The charges are in the same order. They are settled in three groups below.
        spend_requests = [*rates, *token_requests, *budget.spend_requests]
        charges = await self._spend_leases(spend_requests, request) if spend_requests else []
        if rates:
            self._record_usage(principal, request, units)
        has_finished = has_failed = False
        try:
            yield
            has_finished = True
        except Exception as error:
            has_failed = not isinstance(error, CompletionDropped | ClientDisconnected)
            raise
        finally:
            if not has_finished and trace.first_sent_s is None:
                for charge in charges[: len(rates)]:
                    self.leases.settle(charge, 1)
            elif rates and units == ACTION and request.trigger is not Trigger.PREFETCH:
                self._allow_prefetch(principal)  # the request was an action of the user
            budget_start = len(rates) + len(token_requests)
            for charge in charges[len(rates) : budget_start]:
                self.leases.settle(charge, _count_used_tokens(trace))
            for charge in charges[budget_start:]:
                self.leases.settle(charge, budget.compute_cost(trace, has_failed=has_failed))

    async def _spend_leases(
        self, spend_requests: list[SpendRequest], request: CompletionRequest
    ) -> list[Charge]:
        try:
            return await self.leases.spend(spend_requests)
        except RateLimitExceeded as error:
            kind = error.spec.kind
            self.num_rejected[kind] += 1
            if kind == SPEND:
                raise_budget_exhausted(request)
            if kind in _MESSAGES:
                message = _MESSAGES[kind]
                raise TooManyRequests("rate_limited", message, retry_after_s=error.wait_s) from None
            message = "This tenant's token quota is used up until 00:00 UTC."
            raise TooManyRequests(
                "token_quota_exceeded", message, retry_after_s=self._until_midnight_s()
            ) from None

    def _build_rate_requests(
        self, limits: PolicyLimits, principal: Principal, units: int
    ) -> list[SpendRequest]:
        tenant, credential = principal.snapshot.tenant_id, principal.credential
        # Kind, ID and limit. Each specification has the tenant's ID anyway. For a service key, the
        # user ID is None.
        holders = (
            ("tenant", "", limits.tenant),
            ("user", credential.user_id, limits.user),
            ("key", credential.key_id, limits.key),
        )
        specs = [
            _build_rate_spec(tenant, kind, holder, limit)
            for kind, holder, limit in holders
            if limit is not None and holder is not None
        ]
        return [SpendRequest(spec, units) for spec in specs]

    def _build_token_requests(
        self, limits: PolicyLimits, principal: Principal, request: CompletionRequest
    ) -> list[SpendRequest]:
        tokens = limits.tokens_per_day.get(request.tier)
        if tokens is None:
            return []
        day = self._now().date().isoformat()
        max_prompt_tokens = self._prompt_tokens[request.tier]
        spec = _build_token_spec(
            principal.snapshot.tenant_id, request.tier, tokens, day, max_prompt_tokens
        )
        return [SpendRequest(spec, _estimate_tokens(request, max_prompt_tokens))]

    def _estimate_units(self, principal: Principal, request: CompletionRequest) -> int:
        recent = self._recent.get(_holder_of(principal)) or _RecentUsage()
        now_s = self._clock.monotonic_s()
        may_be_repeat = now_s - recent.requested_s <= REPEAT_S and request.mode is not Mode.CHAT
        if request.is_warm_up or (
            may_be_repeat and recent.position_hash == _hash_position(request)
        ):
            return 1
        may_prefetch_cheaply = (
            now_s - recent.last_action_s <= PREFETCH_S and recent.num_prefetches > 0
        )
        return 1 if request.trigger is Trigger.PREFETCH and may_prefetch_cheaply else ACTION

    def _record_usage(self, principal: Principal, request: CompletionRequest, units: int) -> None:
        recent = self._get_recent_usage(principal)
        recent.position_hash = _hash_position(request)
        recent.requested_s = self._clock.monotonic_s()
        if request.trigger is Trigger.PREFETCH and units < ACTION:
            recent.num_prefetches = max(0, recent.num_prefetches - 1)

    def _allow_prefetch(self, principal: Principal) -> None:
        recent = self._get_recent_usage(principal)
        recent.last_action_s = self._clock.monotonic_s()
        recent.num_prefetches = min(recent.num_prefetches + 1, MAX_PREFETCHES)

    def _get_recent_usage(self, principal: Principal) -> _RecentUsage:
        """Return the recent usage of the user or service key, and mark it as most recently used."""
        holder = _holder_of(principal)
        recent = self._recent.setdefault(holder, _RecentUsage())
        self._recent.move_to_end(holder)
        if len(self._recent) > _MAX_HOLDERS:
            self._recent.popitem(last=False)
        return recent

    def _until_midnight_s(self) -> float:
        now_utc = self._now()
        midnight = now_utc.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
        return (midnight - now_utc).total_seconds()

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock.now_ms() / 1000, tz=UTC)


def _holder_of(principal: Principal) -> str:
    return principal.credential.user_id or principal.credential.key_id


def _hash_position(request: CompletionRequest) -> int:
    """Return a hash of the cursor's position: of the text next to the cursor, and of the path.

    The hash is salted by the process and kept in memory only.
    """
    return hash((request.path, request.prefix[-256:], request.suffix[:64]))


@lru_cache(maxsize=_MAX_HOLDERS)
def _build_rate_spec(tenant: TenantId, kind: str, holder: str, limit: RateLimit) -> BucketSpec:
    """Return a valid specification, even if the snapshot has a limit below 1."""
    capacity = max(1, limit.burst) * ACTION
    max_lease = max(ACTION, capacity // 4)  # spare units that are unavailable to other gateways
    return BucketSpec(
        kind=kind,
        tenant_id=tenant,
        # In a cluster, the part in braces selects the node: one call needs one node.
        key=f"caret:rate:{{{tenant}}}:{kind}:{holder}",
        capacity=capacity,
        interval_s=60.0 / (max(1, limit.per_minute) * ACTION),
        lease=min(_FIRST_ACTIONS * ACTION, max_lease),
        max_lease=max_lease,
    )


@lru_cache(maxsize=_MAX_HOLDERS)
def _build_token_spec(
    tenant: TenantId, tier: Tier, tokens: int, day: str, max_prompt_tokens: int
) -> BucketSpec:
    capacity = max(1, tokens)
    max_lease = max(1, capacity // 20)  # spare tokens that are unavailable to other gateways
    return BucketSpec(
        kind="tokens",
        tenant_id=tenant,
        key=f"caret:token-quota:{{{tenant}}}:{tier}:{day}",
        capacity=capacity,
        interval_s=None,
        lease=min(_FIRST_TOKENS, max_lease),
        max_lease=max_lease,
        # While Redis is unavailable, even a small token quota allows one request.
        max_debt=max(max_lease, max_prompt_tokens + MAX_CHAT_TOKENS),
    )


def _estimate_tokens(request: CompletionRequest, max_prompt_tokens: int) -> int:
    """Return the maximum number of tokens of the prompt and the completion, approximately."""
    num_chars = (
        len(request.prefix)
        + len(request.suffix)
        + sum(len(file.text) for file in request.files)
        + sum(len(definition.text) for definition in request.definitions)
        + sum(len(message.text) for message in request.messages)
    )
    num_prompt_tokens = min(num_chars // _CHARS_PER_TOKEN, max_prompt_tokens)
    return num_prompt_tokens + request.max_tokens


def _count_used_tokens(trace: RequestTrace) -> int:
    if trace.engine_called_s is None:
        return 0
    return trace.prompt_tokens + trace.generated_tokens
