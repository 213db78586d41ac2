"""The newest snapshots, and the notification when a key ends."""

from msgspec.structs import replace

from caret.contracts.api_key import KeyKind, ParsedKey, generate_key
from caret.contracts.policy import Feature, Mode, PolicyOverride, TenantPolicy
from caret.contracts.pricing import BudgetScope, HardBudget, SpendingLimits
from caret.contracts.snapshot import TenantSnapshot, TenantStatus
from caret.foundation.ids import KeyId, LookupId, UserId
from inference.gateway.snapshots.snapshot_store import SnapshotStore
from tests.fakes.clock import FakeClock
from tests.fakes.tenants import (
    ACME,
    ADA,
    ALICE,
    GLOBEX,
    ROOT_SECRET,
    make_credential,
    make_policy,
    make_snapshot,
)

KEY = generate_key(KeyKind.DEVELOPER)
OTHER_KEY = generate_key(KeyKind.DEVELOPER)
IN_FORCE = make_credential(KEY)
REVOKED = make_credential(KEY, revoked_at_ms=1)
KEY_ID = IN_FORCE.key_id
ALICES, SERVICES = generate_key(KeyKind.DEVELOPER), generate_key(KeyKind.SERVICE)
NO_CHAT = PolicyOverride(features=frozenset(Feature) - {Feature.CHAT})
NO_SRC = PolicyOverride(content_exclusion={"*": ("src/*",)})


def make_authority(clock: FakeClock | None = None) -> SnapshotStore:
    return SnapshotStore(root_secret=ROOT_SECRET, clock=clock or FakeClock(), max_age_s=300)


def test_a_newer_snapshot_replaces_an_older_one() -> None:
    authority = make_authority()
    authority.replace(make_snapshot(IN_FORCE, version=1))

    authority.replace(make_snapshot(version=2))

    assert authority.versions == {ACME: 2}
    assert authority.find_credentials(KEY.lookup_id) == ()


def test_an_older_snapshot_never_replaces_a_newer_one() -> None:
    authority = make_authority()
    authority.replace(make_snapshot(REVOKED, version=2))

    authority.replace(make_snapshot(IN_FORCE, version=1))

    assert authority.versions == {ACME: 2}
    assert [pair[0] for pair in authority.find_credentials(KEY.lookup_id)] == [REVOKED]


def test_a_snapshot_of_the_same_version_changes_nothing() -> None:
    authority = make_authority()
    authority.replace(make_snapshot(REVOKED, version=2))

    authority.replace(make_snapshot(IN_FORCE, version=2))

    assert [pair[0] for pair in authority.find_credentials(KEY.lookup_id)] == [REVOKED]


def test_an_unknown_lookup_id_has_no_candidates() -> None:
    assert make_authority().find_credentials(LookupId("00000000")) == ()


def test_two_tenants_may_hold_the_same_lookup_id() -> None:
    authority = make_authority()

    authority.replace(make_snapshot(IN_FORCE))
    authority.replace(make_snapshot(IN_FORCE, tenant_id=GLOBEX))

    tenants = [snapshot.tenant_id for _, snapshot in authority.find_credentials(KEY.lookup_id)]
    assert tenants == [ACME, GLOBEX]


def test_a_neighbours_new_snapshot_leaves_the_shared_lookup_id_of_acme() -> None:
    authority = make_authority()
    authority.replace(make_snapshot(IN_FORCE))
    authority.replace(make_snapshot(IN_FORCE, tenant_id=GLOBEX))

    authority.replace(make_snapshot(tenant_id=GLOBEX, version=2))

    tenants = [snapshot.tenant_id for _, snapshot in authority.find_credentials(KEY.lookup_id)]
    assert tenants == [ACME]


def test_an_authority_that_never_heard_anything_is_not_fresh() -> None:
    assert not make_authority().is_fresh()


def test_an_authority_is_fresh_until_its_age_is_reached() -> None:
    clock = FakeClock()
    authority = make_authority(clock)
    authority.mark_synced()

    clock.pass_s(300)

    assert authority.is_fresh()


def test_an_authority_is_stale_beyond_its_age() -> None:
    clock = FakeClock()
    authority = make_authority(clock)
    authority.mark_synced()

    clock.pass_s(300.1)

    assert not authority.is_fresh()


def test_taking_in_a_snapshot_confirms_nothing() -> None:
    authority = make_authority()

    authority.replace(make_snapshot())

    assert not authority.is_fresh()


def test_peppers_differ_by_version() -> None:
    authority = make_authority()

    assert authority.derive_pepper(1) == authority.derive_pepper(1) != authority.derive_pepper(2)


def test_a_watcher_is_told_when_its_key_is_revoked() -> None:
    authority, told = make_authority(), list[str]()
    authority.replace(make_snapshot(IN_FORCE))

    with authority.watch_key(KEY_ID, lambda: told.append("ended")):
        authority.replace(make_snapshot(REVOKED, version=2))

    assert told == ["ended"]


def test_a_watcher_is_told_when_its_key_disappears() -> None:
    authority, told = make_authority(), list[str]()
    authority.replace(make_snapshot(IN_FORCE))

    with authority.watch_key(KEY_ID, lambda: told.append("ended")):
        authority.replace(make_snapshot(version=2))

    assert told == ["ended"]


def test_a_watcher_is_told_when_its_tenant_is_suspended() -> None:
    authority, told = make_authority(), list[str]()
    authority.replace(make_snapshot(IN_FORCE))

    with authority.watch_key(KEY_ID, lambda: told.append("ended")):
        authority.replace(make_snapshot(IN_FORCE, version=2, status=TenantStatus.SUSPENDED))

    assert told == ["ended"]


def test_a_watcher_is_told_once_though_more_snapshots_follow() -> None:
    authority, told = make_authority(), list[str]()
    authority.replace(make_snapshot(IN_FORCE))

    with authority.watch_key(KEY_ID, lambda: told.append("ended")):
        authority.replace(make_snapshot(REVOKED, version=2))
        authority.replace(make_snapshot(REVOKED, version=3))

    assert told == ["ended"]


def test_all_watchers_of_a_key_are_told() -> None:
    authority, told = make_authority(), list[str]()
    authority.replace(make_snapshot(IN_FORCE))

    with (
        authority.watch_key(KEY_ID, lambda: told.append("first")),
        authority.watch_key(KEY_ID, lambda: told.append("second")),
    ):
        authority.replace(make_snapshot(REVOKED, version=2))

    assert sorted(told) == ["first", "second"]


def test_a_watcher_that_has_left_is_not_told() -> None:
    authority, told = make_authority(), list[str]()
    authority.replace(make_snapshot(IN_FORCE))
    with authority.watch_key(KEY_ID, lambda: told.append("ended")):
        pass

    authority.replace(make_snapshot(REVOKED, version=2))

    assert told == []


def test_a_watcher_of_another_key_is_not_told() -> None:
    authority, told = make_authority(), list[str]()
    authority.replace(make_snapshot(IN_FORCE, make_credential(OTHER_KEY, key_id="key-2")))

    with authority.watch_key(KeyId("key-2"), lambda: told.append("ended")):
        authority.replace(
            make_snapshot(REVOKED, make_credential(OTHER_KEY, key_id="key-2"), version=2)
        )

    assert told == []


def test_a_watcher_at_the_neighbours_is_not_told() -> None:
    authority, told = make_authority(), list[str]()
    authority.replace(make_snapshot(IN_FORCE))
    theirs = make_credential(OTHER_KEY, key_id="key-of-globex")
    authority.replace(make_snapshot(theirs, tenant_id=GLOBEX))

    with authority.watch_key(theirs.key_id, lambda: told.append("ended")):
        authority.replace(make_snapshot(REVOKED, version=2))

    assert told == []


def _layered(*layers: PolicyOverride, of: dict[UserId, tuple[int, ...]]) -> TenantSnapshot:
    keys = (make_credential(KEY), make_credential(ALICES, key_id="k2", user_id=ALICE))
    service = make_credential(SERVICES, key_id="k3", user_id=None)
    return replace(make_snapshot(*keys, service), layers=layers, layers_of=of)


def _policy_of(authority: SnapshotStore, key: ParsedKey) -> TenantPolicy:
    ((_, snapshot),) = authority.find_credentials(key.lookup_id)
    return snapshot.policy


def test_a_users_policy_is_narrowed_by_his_layers() -> None:
    authority = make_authority()

    authority.replace(_layered(NO_CHAT, NO_SRC, of={ADA: (0, 1), ALICE: (1,)}))

    assert Mode.CHAT not in _policy_of(authority, KEY).features
    assert Mode.CHAT in _policy_of(authority, ALICES).features
    assert "src/*" in _policy_of(authority, KEY).content_exclusion["*"]
    assert "src/*" in _policy_of(authority, ALICES).content_exclusion["*"]


def test_a_service_key_has_the_tenants_policy() -> None:
    authority = make_authority()

    authority.replace(_layered(NO_CHAT, of={ADA: (0,)}))

    assert _policy_of(authority, SERVICES) == make_policy()


def test_users_of_the_same_layers_share_a_policy() -> None:
    authority = make_authority()

    authority.replace(_layered(NO_CHAT, of={ADA: (0,), ALICE: (0,)}))

    assert _policy_of(authority, KEY) is _policy_of(authority, ALICES)


def test_a_layer_that_was_lifted_is_forgotten() -> None:
    authority = make_authority()
    authority.replace(_layered(NO_CHAT, of={ADA: (0,)}))

    authority.replace(replace(make_snapshot(make_credential(KEY)), version=2))

    assert _policy_of(authority, KEY) == make_policy()
    assert authority.find_credentials(ALICES.lookup_id) == ()


def _budgeted(*budgets: HardBudget) -> TenantSnapshot:
    return replace(_layered(of={}), spending=SpendingLimits((), budgets))


def _budgets_of(authority: SnapshotStore, key: ParsedKey) -> list[str]:
    ((_, snapshot),) = authority.find_credentials(key.lookup_id)
    return [budget.budget_id for budget in snapshot.spending.budgets]


def test_a_credential_comes_with_the_budgets_that_concern_its_user() -> None:
    authority = make_authority()

    authority.replace(
        _budgeted(
            HardBudget("both", BudgetScope.TEAM, 1, (ADA, ALICE)),
            HardBudget("all", BudgetScope.TENANT, 1),
            HardBudget("nobodys", BudgetScope.TEAM, 1),
            HardBudget("hers", BudgetScope.USER, 1, (ADA,)),
        )
    )

    assert _budgets_of(authority, KEY) == ["both", "all", "hers"]
    assert _budgets_of(authority, ALICES) == ["both", "all"]
    assert _budgets_of(authority, SERVICES) == ["all"]


def test_what_a_request_carries_names_no_other_user() -> None:
    authority = make_authority()

    authority.replace(_budgeted(HardBudget("team", BudgetScope.TEAM, 1, (ADA, ALICE))))

    ((_, hers),) = authority.find_credentials(KEY.lookup_id)
    ((_, alices),) = authority.find_credentials(ALICES.lookup_id)
    assert hers is alices
    assert hers.spending.budgets[0].users == ()


def test_users_of_one_policy_and_other_budgets_share_the_policy() -> None:
    authority = make_authority()
    layered = _layered(NO_CHAT, of={ADA: (0,), ALICE: (0,)})

    authority.replace(
        replace(
            layered, spending=SpendingLimits((), (HardBudget("b", BudgetScope.USER, 1, (ADA,)),))
        )
    )

    assert _policy_of(authority, KEY) is _policy_of(authority, ALICES)
    assert _budgets_of(authority, ALICES) == []
