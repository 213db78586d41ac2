"""admit: the policy's limits, and slots that are freed however a completion ends."""

import asyncio
from contextlib import ExitStack
from typing import Any

import pytest

from caret.contracts.content_exclusion import is_excluded
from caret.contracts.policy import Mode, PolicyLimits, RateLimit, TenantPolicy, Trigger
from inference.completion.incoming_request import ContextFile
from inference.errors import CompletionDropped, ForbiddenRequest, TooManyRequests
from inference.gateway.admit import AdmissionController, admit
from inference.gateway.load_shedding.concurrency_limit import ConcurrencyLimiter
from tests.fakes.pools import REGION, make_admission, make_load
from tests.fakes.requests import make_account, make_request
from tests.fakes.tenants import ACME, ALL_MODES, GLOBEX, make_policy, make_principal


def _excluding(*globs: str, repository: str = "*") -> TenantPolicy:
    return make_policy(content_exclusion={repository: globs})


def _one_seat() -> AdmissionController:
    return make_admission(seats=ConcurrencyLimiter(max_total=1))


def _is_excluded(glob: str, path: str) -> bool:
    return is_excluded(_excluding(glob), repository="shop", path=path)


async def test_what_the_policy_allows_is_admitted() -> None:
    principal, request = make_principal(), make_request()

    async with admit(_one_seat(), principal, request, make_account()) as admitted:
        assert (admitted.principal, admitted.request) == (principal, request)


@pytest.mark.parametrize("features", [ALL_MODES - {Mode.FIM}, frozenset()])
async def test_a_mode_that_the_policy_does_not_name_is_refused(features: frozenset[Mode]) -> None:
    principal = make_principal(policy=make_policy(features=features))

    with pytest.raises(ForbiddenRequest) as refused:
        async with admit(_one_seat(), principal, make_request(mode=Mode.FIM), make_account()):
            pass

    assert (refused.value.code, refused.value.http_status) == ("feature_disabled", 403)


@pytest.mark.parametrize("modes", [frozenset({Mode.CHAT}), frozenset()])
async def test_a_mode_that_the_key_may_not_ask_for_is_refused(modes: frozenset[Mode]) -> None:
    principal = make_principal(modes=modes)

    with pytest.raises(ForbiddenRequest) as refused:
        async with admit(_one_seat(), principal, make_request(mode=Mode.FIM), make_account()):
            pass

    assert (refused.value.code, refused.value.http_status) == ("insufficient_scope", 403)


async def test_a_mode_that_the_key_may_ask_for_is_admitted() -> None:
    principal, request = make_principal(modes=frozenset({Mode.FIM})), make_request(mode=Mode.FIM)

    async with admit(_one_seat(), principal, request, make_account()) as admitted:
        assert admitted.request.mode is Mode.FIM


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"models": frozenset({"other"})}, "model_not_allowed"),
        ({"models": frozenset()}, "model_not_allowed"),
        ({"regions": frozenset({"mars"})}, "region_not_allowed"),
    ],
)
async def test_what_the_policy_does_not_name_does_not_complete(
    fields: dict[str, Any], code: str
) -> None:
    principal = make_principal(policy=make_policy(**fields))

    with pytest.raises(ForbiddenRequest) as refused:
        async with admit(_one_seat(), principal, make_request(), make_account()):
            pass

    assert (refused.value.code, refused.value.http_status) == (code, 403)


async def test_what_the_policy_names_completes() -> None:
    policy = make_policy(models=frozenset({"demo"}), regions=frozenset({REGION}))

    async with admit(
        _one_seat(), make_principal(policy=policy), make_request(), make_account()
    ) as admitted:
        assert admitted.request == make_request()


async def test_an_excluded_path_is_refused_without_repeating_it() -> None:
    principal = make_principal(policy=_excluding("secrets/*"))

    with pytest.raises(ForbiddenRequest) as refused:
        async with admit(
            _one_seat(),
            principal,
            make_request(path="secrets/keys.py"),
            make_account(),
        ):
            pass

    assert refused.value.code == "path_excluded"
    assert "keys.py" not in refused.value.message


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
def test_a_glob_excludes_what_administrators_expect(glob: str, path: str) -> None:
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
def test_a_glob_excludes_nothing_else(glob: str, path: str) -> None:
    assert not _is_excluded(glob, path)


def test_many_wildcards_are_matched_in_no_time() -> None:
    glob = "/**/".join("abcdefghijklmnopqrstuvwxyz")

    assert not _is_excluded(glob, "a/" * 500 + "nowhere")


def test_an_exclusion_for_a_repository_concerns_this_one_only() -> None:
    policy = _excluding("secrets/*", repository="shop")

    assert is_excluded(policy, repository="shop", path="secrets/a.py")
    assert not is_excluded(policy, repository="blog", path="secrets/a.py")


@pytest.mark.parametrize(
    ("policy", "path"),
    [
        (_excluding("**/.env"), ".env"),
        (_excluding("**/.env", repository="shop"), ".env"),
        (make_policy(requires_path=True), ""),
    ],
)
async def test_excluded_files_leave_the_request(policy: TenantPolicy, path: str) -> None:
    principal = make_principal(policy=policy)
    kept, dropped = ContextFile("b.py", "", 0), ContextFile(path, "PASSWORD=1", 0)

    request = make_request(repository="shop", files=(dropped, kept))
    async with admit(_one_seat(), principal, request, make_account()) as admitted:
        assert admitted.request.files == (kept,)


def test_a_tenant_may_use_all_its_seats_and_no_more() -> None:
    seats = ConcurrencyLimiter(max_total=10)

    with (
        seats.acquire(ACME, max_of_tenant=2),
        seats.acquire(ACME, max_of_tenant=2),
        pytest.raises(TooManyRequests) as refused,
        seats.acquire(ACME, max_of_tenant=2),
    ):
        pass

    assert (refused.value.code, refused.value.http_status) == ("too_many_requests", 429)


def test_a_tenant_without_seats_leaves_its_neighbour_seated() -> None:
    seats = ConcurrencyLimiter(max_total=10)

    with seats.acquire(ACME, max_of_tenant=1), seats.acquire(GLOBEX, max_of_tenant=1):
        assert seats.num_in_flight == 2


def test_a_full_gateway_refuses_everybody() -> None:
    seats = ConcurrencyLimiter(max_total=1)

    with (
        seats.acquire(ACME, max_of_tenant=5),
        pytest.raises(TooManyRequests) as refused,
        seats.acquire(GLOBEX, max_of_tenant=5),
    ):
        pass

    assert (refused.value.code, refused.value.http_status) == ("gateway_at_capacity", 503)


def test_a_refused_completion_takes_no_seat() -> None:
    seats = ConcurrencyLimiter(max_total=10)

    with seats.acquire(ACME, max_of_tenant=1):
        with pytest.raises(TooManyRequests), seats.acquire(ACME, max_of_tenant=1):
            pass

        assert seats.num_in_flight == 1


@pytest.mark.parametrize("leaving", [RuntimeError, asyncio.CancelledError, GeneratorExit])
async def test_a_seat_is_freed_however_its_holder_leaves(leaving: type[BaseException]) -> None:
    seats = ConcurrencyLimiter(max_total=1)

    with pytest.raises(leaving):
        async with admit(
            make_admission(seats=seats), make_principal(), make_request(), make_account()
        ):
            raise leaving

    assert seats.num_in_flight == 0


async def test_what_finds_no_room_in_its_pool_is_shed_and_takes_no_seat() -> None:
    seats, load = ConcurrencyLimiter(max_total=1), make_load("demo-fast")
    prefetch = make_request(trigger=Trigger.PREFETCH)
    with ExitStack() as crowd:
        while load.get_stats("demo-fast", Mode.INLINE).num_in_flight < 40:
            crowd.enter_context(load.admit("demo-fast", make_request(), make_account()))

        with pytest.raises(CompletionDropped):
            async with admit(
                make_admission(seats=seats, load=load), make_principal(), prefetch, make_account()
            ):
                pass

    assert seats.num_in_flight == 0


async def test_a_refused_tenant_learns_nothing_of_a_full_gateway() -> None:
    limits = PolicyLimits(tenant=RateLimit(per_minute=1, burst=1))
    principal = make_principal(policy=make_policy(limits=limits))
    admission = make_admission(seats=ConcurrencyLimiter(max_total=1))
    async with admit(admission, principal, make_request(), make_account()):
        # The gateway is full now, but the tenant's own limit is reported.
        with pytest.raises(TooManyRequests) as refused:
            async with admit(admission, principal, make_request(path="b.py"), make_account()):
                pass

    assert refused.value.code == "rate_limited"


async def test_a_forbidden_request_takes_no_seat() -> None:
    seats = ConcurrencyLimiter(max_total=1)
    principal = make_principal(policy=_excluding("*"))

    with pytest.raises(ForbiddenRequest):
        async with admit(make_admission(seats=seats), principal, make_request(), make_account()):
            pass

    assert seats.num_in_flight == 0
