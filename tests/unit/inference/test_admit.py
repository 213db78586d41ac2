"""The stage admit: the limits of the policy, and concurrency slots that are always freed.

Comments in a prompt can name other paths than the field `path`. These are the request's
`possible_paths`: its file may have any of them.
"""

import asyncio
from contextlib import ExitStack, nullcontext
from typing import Any

import pytest

from caret.contracts.content_exclusion import is_excluded
from caret.contracts.policy import Mode, PolicyLimits, RateLimit, TenantPolicy, Trigger
from inference.completion.incoming_request import ContextFile
from inference.errors import CompletionDropped, ForbiddenRequest, TooManyRequests
from inference.gateway.admit import AdmissionController, admit
from inference.gateway.load_shedding.concurrency_limit import ConcurrencyLimiter
from tests.fakes.pools import REGION, make_admission, make_load_shedder
from tests.fakes.requests import make_request, make_trace
from tests.fakes.tenants import ACME, ALL_MODES, GLOBEX, make_policy, make_principal


def _excluding(*globs: str, repository: str = "*") -> TenantPolicy:
    return make_policy(content_exclusion={repository: globs})


def _one_slot() -> AdmissionController:
    return make_admission(concurrency=ConcurrencyLimiter(max_total=1))


def _is_excluded(glob: str, path: str) -> bool:
    return is_excluded(_excluding(glob), repository="shop", path=path)


async def test_an_allowed_request_is_admitted() -> None:
    principal, request = make_principal(), make_request()

    async with admit(_one_slot(), principal, request, make_trace()) as admitted:
        assert (admitted.principal, admitted.request) == (principal, request)


@pytest.mark.parametrize("features", [ALL_MODES - {Mode.FIM}, frozenset()])
async def test_a_mode_missing_from_the_policy_is_rejected(features: frozenset[Mode]) -> None:
    principal = make_principal(policy=make_policy(features=features))

    with pytest.raises(ForbiddenRequest) as rejected:
        async with admit(_one_slot(), principal, make_request(mode=Mode.FIM), make_trace()):
            pass

    assert (rejected.value.code, rejected.value.http_status) == ("feature_disabled", 403)


@pytest.mark.parametrize("modes", [frozenset({Mode.CHAT}), frozenset()])
async def test_a_mode_outside_the_scope_of_the_key_is_rejected(modes: frozenset[Mode]) -> None:
    principal = make_principal(modes=modes)

    with pytest.raises(ForbiddenRequest) as rejected:
        async with admit(_one_slot(), principal, make_request(mode=Mode.FIM), make_trace()):
            pass

    assert (rejected.value.code, rejected.value.http_status) == ("insufficient_scope", 403)


async def test_a_mode_within_the_scope_of_the_key_is_admitted() -> None:
    principal, request = make_principal(modes=frozenset({Mode.FIM})), make_request(mode=Mode.FIM)

    async with admit(_one_slot(), principal, request, make_trace()) as admitted:
        assert admitted.request.mode is Mode.FIM


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"models": frozenset({"other"})}, "model_not_allowed"),
        ({"models": frozenset()}, "model_not_allowed"),
        ({"regions": frozenset({"mars"})}, "region_not_allowed"),
    ],
)
async def test_a_model_or_region_missing_from_the_policy_is_rejected(
    fields: dict[str, Any], code: str
) -> None:
    principal = make_principal(policy=make_policy(**fields))

    with pytest.raises(ForbiddenRequest) as rejected:
        async with admit(_one_slot(), principal, make_request(), make_trace()):
            pass

    assert (rejected.value.code, rejected.value.http_status) == (code, 403)


async def test_a_model_and_region_in_the_policy_are_admitted() -> None:
    policy = make_policy(models=frozenset({"demo"}), regions=frozenset({REGION}))

    async with admit(
        _one_slot(), make_principal(policy=policy), make_request(), make_trace()
    ) as admitted:
        assert admitted.request == make_request()


async def test_the_error_for_an_excluded_path_does_not_repeat_the_path() -> None:
    principal = make_principal(policy=_excluding("secrets/*"))
    request = make_request(path="secrets/keys.py")

    with pytest.raises(ForbiddenRequest) as rejected:
        async with admit(_one_slot(), principal, request, make_trace()):
            pass

    assert rejected.value.code == "path_excluded"
    assert "keys.py" not in rejected.value.message


@pytest.mark.parametrize(
    ("repository", "is_allowed"), [("*", False), ("shop", False), ("blog", True)]
)
async def test_too_many_possible_paths_are_rejected_if_the_repository_has_exclusions(
    repository: str, is_allowed: bool
) -> None:
    principal = make_principal(policy=_excluding("secrets/*", repository=repository))
    paths = tuple(f"open/{number}.py" for number in range(50_000))
    request = make_request(repository="shop", possible_paths=paths)

    with nullcontext() if is_allowed else pytest.raises(ForbiddenRequest, match="path_excluded"):
        async with admit(_one_slot(), principal, request, make_trace()) as admitted:
            assert admitted.request == request


async def test_a_request_with_256_allowed_possible_paths_is_admitted() -> None:
    principal = make_principal(policy=_excluding("secrets/*", repository="*"))
    paths = tuple(f"open/{number}.py" for number in range(256))
    request = make_request(path=paths[0], possible_paths=paths)

    async with admit(_one_slot(), principal, request, make_trace()) as admitted:
        assert admitted.request == request


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("**/.env", ".env"),
        ("**/.env", "a/.env"),
        ("**/.env", "a/b/.env"),
        ("**/.env", "./.env"),
        ("**/.env", "/.env"),
        ("**/.env", "C:\\work\\shop\\.env"),
        ("secrets/*", "secrets\\keys.py"),
        ("/secrets/*", "secrets/keys.py"),
        ("secrets/**", "secrets/deep/keys.py"),
        ("**/secrets/**", "secrets/keys.py"),
        ("*.pem", "a/b/server.pem"),
        ("src/**/private.py", "src/a/b/private.py"),
        ("src/**/private.py", "src/private.py"),
        ("src/**/**/private.py", "src/private.py"),
        ("src/**/deep/**/private.py", "src/deep/a/private.py"),
        ("*", "anything"),
    ],
)
def test_a_glob_excludes_matching_paths(glob: str, path: str) -> None:
    assert _is_excluded(glob, path)


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("**/.env", "a/.envrc"),
        ("**/.env", "b.env"),
        ("secrets/*", "src/secrets.py"),
        ("*.pem", "a.pem.py"),
        ("src/**/private.py", "src/notprivate.py"),
        ("src/**/private.py", "other/private.py"),
    ],
)
def test_a_glob_excludes_no_other_paths(glob: str, path: str) -> None:
    assert not _is_excluded(glob, path)


def test_many_wildcards_are_matched_quickly() -> None:
    glob = "/**/".join("abcdefghijklmnopqrstuvwxyz")

    assert not _is_excluded(glob, "a/" * 500 + "nowhere")


def test_an_exclusion_for_a_repository_applies_only_to_it() -> None:
    policy = _excluding("secrets/*", repository="shop")

    assert is_excluded(policy, repository="shop", path="secrets/a.py")
    assert not is_excluded(policy, repository="blog", path="secrets/a.py")


@pytest.mark.parametrize(
    ("policy", "path"),
    [
        (_excluding("**/.env"), ".env"),
        (_excluding("**/.env", repository="shop"), ".env"),
        (make_policy(requires_path=True), ""),  # a file without a path
    ],
)
async def test_excluded_files_are_removed_from_the_request(policy: TenantPolicy, path: str) -> None:
    principal = make_principal(policy=policy)
    allowed, excluded = ContextFile("b.py", "", 0), ContextFile(path, "PASSWORD=1", 0)
    request = make_request(repository="shop", files=(excluded, allowed))

    async with admit(_one_slot(), principal, request, make_trace()) as admitted:
        assert admitted.request.files == (allowed,)


def test_a_tenant_may_use_all_its_slots_and_no_more() -> None:
    concurrency = ConcurrencyLimiter(max_total=10)

    with (
        concurrency.acquire(ACME, max_of_tenant=2),
        concurrency.acquire(ACME, max_of_tenant=2),
        pytest.raises(TooManyRequests) as rejected,
        concurrency.acquire(ACME, max_of_tenant=2),
    ):
        pass

    assert (rejected.value.code, rejected.value.http_status) == ("too_many_requests", 429)


def test_a_tenant_without_free_slots_does_not_affect_others() -> None:
    concurrency = ConcurrencyLimiter(max_total=10)

    with concurrency.acquire(ACME, max_of_tenant=1), concurrency.acquire(GLOBEX, max_of_tenant=1):
        assert concurrency.num_in_flight == 2


def test_a_full_gateway_rejects_all_tenants() -> None:
    concurrency = ConcurrencyLimiter(max_total=1)

    with (
        concurrency.acquire(ACME, max_of_tenant=5),
        pytest.raises(TooManyRequests) as rejected,
        concurrency.acquire(GLOBEX, max_of_tenant=5),
    ):
        pass

    assert (rejected.value.code, rejected.value.http_status) == ("gateway_at_capacity", 503)


def test_a_rejected_completion_takes_no_slot() -> None:
    concurrency = ConcurrencyLimiter(max_total=10)

    with concurrency.acquire(ACME, max_of_tenant=1):
        with pytest.raises(TooManyRequests), concurrency.acquire(ACME, max_of_tenant=1):
            pass

        assert concurrency.num_in_flight == 1


@pytest.mark.parametrize("exception", [RuntimeError, asyncio.CancelledError, GeneratorExit])
async def test_a_slot_is_freed_after_any_exception(exception: type[BaseException]) -> None:
    concurrency = ConcurrencyLimiter(max_total=1)

    with pytest.raises(exception):
        async with admit(
            make_admission(concurrency=concurrency), make_principal(), make_request(), make_trace()
        ):
            raise exception

    assert concurrency.num_in_flight == 0


async def test_a_shed_request_takes_no_slot() -> None:
    concurrency, load = ConcurrencyLimiter(max_total=1), make_load_shedder("demo-fast")
    prefetch = make_request(trigger=Trigger.PREFETCH)
    with ExitStack() as completions:
        # The pool's limit is 64 requests. Prefetches are shed while half of it or more is in use.
        while load.get_stats("demo-fast", Mode.INLINE).num_in_flight < 40:
            completions.enter_context(load.admit("demo-fast", make_request(), make_trace()))

        with pytest.raises(CompletionDropped):
            async with admit(
                make_admission(concurrency=concurrency, load=load),
                make_principal(),
                prefetch,
                make_trace(),
            ):
                pass

    assert concurrency.num_in_flight == 0


async def test_the_rate_limit_of_a_tenant_is_reported_even_if_the_gateway_is_full() -> None:
    limits = PolicyLimits(tenant=RateLimit(per_minute=1, burst=1))
    principal = make_principal(policy=make_policy(limits=limits))
    admission = make_admission(concurrency=ConcurrencyLimiter(max_total=1))
    async with admit(admission, principal, make_request(), make_trace()):
        # This request exceeds the tenant's rate limit, and the gateway has no free slot.
        with pytest.raises(TooManyRequests) as rejected:
            async with admit(admission, principal, make_request(path="b.py"), make_trace()):
                pass

    assert rejected.value.code == "rate_limited"


async def test_a_forbidden_request_takes_no_slot() -> None:
    concurrency = ConcurrencyLimiter(max_total=1)
    principal = make_principal(policy=_excluding("*"))

    with pytest.raises(ForbiddenRequest):
        async with admit(
            make_admission(concurrency=concurrency), principal, make_request(), make_trace()
        ):
            pass

    assert concurrency.num_in_flight == 0
