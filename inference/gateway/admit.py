"""admit: what the policy allows gets a seat, for as long as it runs.

A seat is a place among the completions that run at once, of the tenant (its policy's limit) and of
the whole gateway. Without one the client is refused at once: waiting is for engines' queues.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace

from caret.contracts.exclusion import is_excluded
from caret.contracts.policy import Tier
from caret.contracts.snapshot import TenantSnapshot
from caret.foundation.ids import TenantId
from inference.completion.account import Account
from inference.completion.request import Admitted, CompletionRequest, Principal
from inference.errors import Busy, Forbidden
from inference.gateway.experiments import Experiments


class Seats:
    """Counts the completions under way. One event loop uses it, so it needs no lock."""

    def __init__(self, *, max_total: int) -> None:
        self._max_total = max_total
        # Whatever its own policy says, one tenant leaves room for the others.
        self._max_of_one = max(1, max_total // 4)
        self._taken: Counter[TenantId] = Counter()

    @property
    def num_taken(self) -> int:
        return self._taken.total()

    @contextmanager
    def one(self, tenant_id: TenantId, *, max_of_tenant: int) -> Iterator[None]:
        """Raises Busy: `too_many_requests`, `gateway_full`."""
        if self._taken[tenant_id] >= min(max_of_tenant, self._max_of_one):
            raise Busy("too_many_requests", "Too many completions of this tenant are under way.")
        if self._taken.total() >= self._max_total:
            raise Busy("gateway_full", "The gateway is full.", http_status=503)
        self._taken[tenant_id] += 1
        try:
            yield
        finally:
            self._taken[tenant_id] -= 1
            if not self._taken[tenant_id]:
                del self._taken[tenant_id]


@dataclass(frozen=True, slots=True)
class Admission:
    """What admission looks at besides the request."""

    seats: Seats
    pool_of: Callable[[TenantSnapshot, Tier], str]  # the name of the tenant's pool
    experiments: Experiments


@asynccontextmanager
async def admit(
    admission: Admission, principal: Principal, request: CompletionRequest, account: Account
) -> AsyncIterator[Admitted]:
    """Raises Forbidden (`feature_disabled`, `path_excluded`) and what Seats.one raises.

    Files that the policy excludes leave the request here; nothing after this sees them.
    """
    policy = principal.snapshot.policy
    if request.mode not in policy.features:
        raise Forbidden("feature_disabled", f"The mode {request.mode} is disabled by policy.")
    if is_excluded(policy, repository=request.repository, path=request.path):
        raise Forbidden("path_excluded", "This path is excluded by policy.")
    allowed = tuple(
        file
        for file in request.files
        if not is_excluded(policy, repository=request.repository, path=file.path)
    )
    max_of_tenant = policy.max_concurrent_completions
    with admission.seats.one(principal.snapshot.tenant_id, max_of_tenant=max_of_tenant):
        yield Admitted(
            principal=principal,
            request=replace(request, files=allowed),
            pool=admission.pool_of(principal.snapshot, request.tier),
            variant=admission.experiments.assign(principal),
        )
