"""admit: what the policy allows, its quotas cover and there is room for gets a seat, for as long as
it runs.

The tests stand in the order of what they look at: first the policy (nothing but the request), then
the tenant's own quotas, last what all tenants share. So what a tenant learns from a refusal is
about itself, unless the service as a whole is full.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from caret.contracts.content_exclusion import is_excluded
from caret.contracts.policy import TenantPolicy, Tier
from caret.contracts.snapshot import TenantSnapshot
from inference.completion.request import AdmittedRequest, CompletionRequest, Principal
from inference.completion.request_trace import RequestTrace
from inference.errors import ForbiddenRequest
from inference.gateway.experiments import ExperimentSet
from inference.gateway.load_shedding.concurrency_limit import ConcurrencyLimiter
from inference.gateway.load_shedding.load_shedder import LoadShedder
from inference.gateway.rate_limits.quotas import Quotas
from inference.gateway.supersession.registry import SupersessionRegistry


@dataclass(frozen=True, slots=True)
class AdmissionController:
    """What admission looks at besides the request."""

    supersession: SupersessionRegistry
    quotas: Quotas
    concurrency: ConcurrencyLimiter
    load_shedder: LoadShedder
    get_pool: Callable[[TenantSnapshot, Tier], str]  # the name of the tenant's pool
    experiments: ExperimentSet
    get_model: Callable[[TenantSnapshot, Tier], str]  # of that pool
    region: str  # of this gateway


@asynccontextmanager
async def admit(
    admission: AdmissionController,
    principal: Principal,
    request: CompletionRequest,
    account: RequestTrace,
) -> AsyncIterator[AdmittedRequest]:
    """Raises Forbidden (`insufficient_scope`, `feature_disabled`, `path_required`, `path_excluded`,
    `model_not_allowed`, `region_not_allowed`), and what Newest.claimed, Quotas.charge, Seats.one
    and Load.one raise.

    Files that the policy excludes leave the request here; nothing after this sees them.
    """
    _check_scope(principal, request)
    allowed = _allowed(principal.snapshot.policy, request)
    policy, tenant_id = principal.snapshot.policy, principal.snapshot.tenant_id
    _check_place(admission, principal.snapshot, request.tier)
    pool = admission.get_pool(principal.snapshot, request.tier)
    with admission.supersession.claim(principal, allowed, account):
        async with admission.quotas.charge(principal, allowed, account):
            with (
                admission.concurrency.acquire(
                    tenant_id, max_of_tenant=policy.max_concurrent_completions
                ),
                admission.load_shedder.admit(pool, allowed, account),
            ):
                yield AdmittedRequest(
                    principal=principal,
                    request=allowed,
                    pool=pool,
                    variant=admission.experiments.assign(principal),
                )


def _check_scope(principal: Principal, request: CompletionRequest) -> None:
    """Raises Forbidden."""
    modes = principal.credential.modes
    if modes is not None and request.mode not in modes:
        raise ForbiddenRequest(
            "insufficient_scope", f"This key may not ask for the mode {request.mode}."
        )


def _check_place(admission: AdmissionController, snapshot: TenantSnapshot, tier: Tier) -> None:
    """Raises Forbidden."""
    policy = snapshot.policy
    if policy.regions is not None and admission.region not in policy.regions:
        raise ForbiddenRequest(
            "region_not_allowed", "By policy nothing is completed in this region."
        )
    if policy.models is not None and admission.get_model(snapshot, tier) not in policy.models:
        raise ForbiddenRequest("model_not_allowed", "By policy the model is not allowed.")


def _allowed(policy: TenantPolicy, request: CompletionRequest) -> CompletionRequest:
    """The request without the files that the policy excludes, or that have no path although it
    requires one. Raises Forbidden."""
    if request.mode not in policy.features:
        raise ForbiddenRequest(
            "feature_disabled", f"The mode {request.mode} is disabled by policy."
        )
    if policy.requires_path and not request.path:
        raise ForbiddenRequest(
            "path_required", "By policy a request must name its file; see the header X-Caret-Path."
        )
    if is_excluded(policy, repository=request.repository, path=request.path):
        raise ForbiddenRequest("path_excluded", "This path is excluded by policy.")
    files = tuple(
        file
        for file in request.files
        if (file.path or not policy.requires_path)
        and not is_excluded(policy, repository=request.repository, path=file.path)
    )
    return request if len(files) == len(request.files) else replace(request, files=files)
