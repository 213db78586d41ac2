"""The admit stage: check the policy and the limits, then hold a concurrency slot.

The checks run in this order: the policy, the tenant's quotas, and last the capacity that all
tenants share. So a rejection tells a tenant nothing about other tenants, unless the shared capacity
is used up.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final, Protocol

from caret.contracts.content_exclusion import exclusion_names, is_excluded
from caret.contracts.policy import Mode, TenantPolicy, Tier
from caret.contracts.snapshot import TenantSnapshot
from inference.completion.request import AdmittedRequest, CompletionRequest, Principal
from inference.completion.request_trace import RequestTrace
from inference.errors import ForbiddenRequest
from inference.gateway.experiments import ExperimentSet
from inference.gateway.load_shedding.concurrency_limit import ConcurrencyLimiter
from inference.gateway.load_shedding.load_shedder import LoadShedder
from inference.gateway.rate_limits.quotas import Quotas
from inference.gateway.supersession.registry import SupersessionRegistry

# A prompt can name tens of thousands of paths. Comparing them all would delay other requests.
_MAX_COMPARED_PATHS: Final = 256


class SelectPool(Protocol):
    def __call__(
        self,
        snapshot: TenantSnapshot,
        tier: Tier,
        *,
        language: str,
        model: str,
        is_edit: bool = False,
    ) -> str:
        """Return the name of the pool. Raises CompletionError."""


@dataclass(frozen=True, slots=True)
class AdmissionController:
    """The parts that admission needs besides the request and the policy."""

    supersession: SupersessionRegistry
    quotas: Quotas
    concurrency: ConcurrencyLimiter
    load_shedder: LoadShedder
    select_pool: SelectPool
    models: Mapping[str, str]  # the name of each pool's model, by the pool's name
    experiments: ExperimentSet
    region: str  # of this gateway


@asynccontextmanager
async def admit(
    admission: AdmissionController,
    principal: Principal,
    request: CompletionRequest,
    trace: RequestTrace,
) -> AsyncIterator[AdmittedRequest]:
    """Check the request, then hold its concurrency slot until the block ends.

    Files, recent edits and definitions that the policy excludes are removed here; no later stage
    sees them.

    The codes of ForbiddenRequest are `insufficient_scope`, `feature_disabled`, `path_required`,
    `path_excluded` and `region_not_allowed`. CompletionDropped means superseded, shed or over
    budget. Raises ForbiddenRequest, TooManyRequests, CompletionDropped, and the errors of
    `select_pool`.
    """
    _check_scope(principal, request)
    allowed = _apply_policy(principal.snapshot.policy, request)
    policy, tenant_id = principal.snapshot.policy, principal.snapshot.tenant_id
    _check_region(admission, policy)
    pool = admission.select_pool(
        principal.snapshot,
        request.tier,
        language=request.language,
        model=request.model,
        is_edit=request.mode is Mode.EDIT,
    )
    with admission.supersession.claim(principal, allowed, trace):
        model = admission.models.get(pool, "")
        async with admission.quotas.charge(principal, allowed, trace, model=model):
            with (
                admission.concurrency.acquire(
                    tenant_id, max_of_tenant=policy.max_concurrent_completions
                ),
                admission.load_shedder.admit(pool, allowed, trace),
            ):
                yield AdmittedRequest(
                    principal=principal,
                    request=allowed,
                    pool=pool,
                    variant=admission.experiments.assign(principal),
                )


def _check_scope(principal: Principal, request: CompletionRequest) -> None:
    """Check that the key may request this mode. Raises ForbiddenRequest."""
    modes = principal.credential.modes
    if modes is not None and request.mode not in modes:
        raise ForbiddenRequest(
            "insufficient_scope", f"This key may not request the mode {request.mode}."
        )


def _check_region(admission: AdmissionController, policy: TenantPolicy) -> None:
    """Check that the policy allows this gateway's region. Raises ForbiddenRequest."""
    if policy.regions is not None and admission.region not in policy.regions:
        raise ForbiddenRequest(
            "region_not_allowed", "The policy allows no completions in this region."
        )


def _apply_policy(policy: TenantPolicy, request: CompletionRequest) -> CompletionRequest:
    """Check the mode and the path. Return the request without texts that must not reach a prompt.

    Files, recent edits and definitions with excluded paths are removed. Those without a path are
    removed as well if the policy requires paths. Raises ForbiddenRequest.
    """
    if request.mode not in policy.features:
        raise ForbiddenRequest(
            "feature_disabled", f"The mode {request.mode} is disabled by policy."
        )
    if policy.requires_path and not request.path:
        raise ForbiddenRequest(
            "path_required",
            "The policy requires the file's path. Send path or the header X-Caret-Path.",
        )
    _check_paths(policy, request)

    def is_allowed(path: str) -> bool:
        if policy.requires_path and not path:
            return False
        return not is_excluded(policy, repository=request.repository, path=path)

    files = tuple(file for file in request.files if is_allowed(file.path))
    edits = tuple(edit for edit in request.recent_edits if is_allowed(edit.path))
    definitions = tuple(item for item in request.definitions if is_allowed(item.path))
    if (files, edits, definitions) == (request.files, request.recent_edits, request.definitions):
        return request  # the usual case, without the cost of a copy
    return replace(request, files=files, recent_edits=edits, definitions=definitions)


def _check_paths(policy: TenantPolicy, request: CompletionRequest) -> None:
    """Check that the policy excludes none of the file's possible paths. Raises ForbiddenRequest.

    If there are more than _MAX_COMPARED_PATHS, the file counts as excluded.
    """
    if not exclusion_names(policy.content_exclusion, request.repository):
        return  # no rule applies to the repository
    paths = {request.path, *request.possible_paths}
    if len(paths) > _MAX_COMPARED_PATHS:
        raise ForbiddenRequest(
            "path_excluded",
            "Comments in the prompt name too many paths to tell whether one is excluded by policy.",
        )
    if any(is_excluded(policy, repository=request.repository, path=path) for path in paths):
        raise ForbiddenRequest("path_excluded", "This path is excluded by policy.")
