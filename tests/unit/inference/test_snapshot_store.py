"""The store of the newest snapshots, which notifies the watchers of a key that becomes invalid."""

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

MAX_AGE_S = 300
KEY = generate_key(KeyKind.DEVELOPER)
OTHER_KEY = generate_key(KeyKind.DEVELOPER)
ACTIVE = make_credential(KEY)
REVOKED = make_credential(KEY, revoked_at_ms=1)
KEY_ID = ACTIVE.key_id
ALICE_KEY, SERVICE_KEY = generate_key(KeyKind.DEVELOPER), generate_key(KeyKind.SERVICE)
NO_CHAT = PolicyOverride(features=frozenset(Feature) - {Feature.CHAT})
NO_SRC = PolicyOverride(content_exclusion={"*": ("src/*",)})


def make_store(clock: FakeClock | None = None) -> SnapshotStore:
    return SnapshotStore(root_secret=ROOT_SECRET, clock=clock or FakeClock(), max_age_s=MAX_AGE_S)


def test_a_newer_snapshot_replaces_an_older_one() -> None:
    snapshot_store = make_store()
    snapshot_store.replace(make_snapshot(ACTIVE, version=1))

    snapshot_store.replace(make_snapshot(version=2))

    assert snapshot_store.versions == {ACME: 2}
    assert snapshot_store.find_credentials(KEY.lookup_id) == ()


def test_an_older_snapshot_never_replaces_a_newer_one() -> None:
    snapshot_store = make_store()
    snapshot_store.replace(make_snapshot(REVOKED, version=2))

    snapshot_store.replace(make_snapshot(ACTIVE, version=1))

    assert snapshot_store.versions == {ACME: 2}
    ((credential, _),) = snapshot_store.find_credentials(KEY.lookup_id)
    assert credential == REVOKED


def test_a_snapshot_of_the_same_version_changes_nothing() -> None:
    snapshot_store = make_store()
    snapshot_store.replace(make_snapshot(REVOKED, version=2))

    snapshot_store.replace(make_snapshot(ACTIVE, version=2))

    ((credential, _),) = snapshot_store.find_credentials(KEY.lookup_id)
    assert credential == REVOKED


def test_an_unknown_lookup_id_has_no_credentials() -> None:
    assert make_store().find_credentials(LookupId("00000000")) == ()


def test_two_tenants_may_have_the_same_lookup_id() -> None:
    snapshot_store = make_store()

    snapshot_store.replace(make_snapshot(ACTIVE))
    snapshot_store.replace(make_snapshot(ACTIVE, tenant_id=GLOBEX))

    tenants = [snapshot.tenant_id for _, snapshot in snapshot_store.find_credentials(KEY.lookup_id)]
    assert tenants == [ACME, GLOBEX]


def test_a_new_snapshot_of_a_tenant_keeps_the_lookup_id_of_another() -> None:
    snapshot_store = make_store()
    snapshot_store.replace(make_snapshot(ACTIVE))
    snapshot_store.replace(make_snapshot(ACTIVE, tenant_id=GLOBEX))

    snapshot_store.replace(make_snapshot(tenant_id=GLOBEX, version=2))

    tenants = [snapshot.tenant_id for _, snapshot in snapshot_store.find_credentials(KEY.lookup_id)]
    assert tenants == [ACME]


def test_a_new_store_is_not_fresh() -> None:
    assert not make_store().is_fresh()


def test_a_store_is_fresh_until_its_maximum_age() -> None:
    clock = FakeClock()
    snapshot_store = make_store(clock)
    snapshot_store.mark_synced()

    clock.pass_s(MAX_AGE_S)

    assert snapshot_store.is_fresh()


def test_a_store_beyond_its_maximum_age_is_stale() -> None:
    clock = FakeClock()
    snapshot_store = make_store(clock)
    snapshot_store.mark_synced()

    clock.pass_s(MAX_AGE_S + 0.1)

    assert not snapshot_store.is_fresh()


def test_a_snapshot_alone_does_not_make_the_store_fresh() -> None:
    snapshot_store = make_store()

    snapshot_store.replace(make_snapshot())

    assert not snapshot_store.is_fresh()


def test_peppers_differ_by_version() -> None:
    snapshot_store = make_store()

    assert (
        snapshot_store.derive_pepper(1)
        == snapshot_store.derive_pepper(1)
        != snapshot_store.derive_pepper(2)
    )


def test_a_watcher_is_notified_when_its_key_is_revoked() -> None:
    snapshot_store, events = make_store(), list[str]()
    snapshot_store.replace(make_snapshot(ACTIVE))

    with snapshot_store.watch_key(KEY_ID, lambda: events.append("ended")):
        snapshot_store.replace(make_snapshot(REVOKED, version=2))

    assert events == ["ended"]


def test_a_watcher_is_notified_when_its_key_disappears() -> None:
    snapshot_store, events = make_store(), list[str]()
    snapshot_store.replace(make_snapshot(ACTIVE))

    with snapshot_store.watch_key(KEY_ID, lambda: events.append("ended")):
        snapshot_store.replace(make_snapshot(version=2))

    assert events == ["ended"]


def test_a_watcher_is_notified_when_its_tenant_is_suspended() -> None:
    snapshot_store, events = make_store(), list[str]()
    snapshot_store.replace(make_snapshot(ACTIVE))

    with snapshot_store.watch_key(KEY_ID, lambda: events.append("ended")):
        snapshot_store.replace(make_snapshot(ACTIVE, version=2, status=TenantStatus.SUSPENDED))

    assert events == ["ended"]


def test_a_watcher_is_notified_only_once() -> None:
    snapshot_store, events = make_store(), list[str]()
    snapshot_store.replace(make_snapshot(ACTIVE))

    with snapshot_store.watch_key(KEY_ID, lambda: events.append("ended")):
        snapshot_store.replace(make_snapshot(REVOKED, version=2))
        snapshot_store.replace(make_snapshot(REVOKED, version=3))

    assert events == ["ended"]


def test_all_watchers_of_a_key_are_notified() -> None:
    snapshot_store, events = make_store(), list[str]()
    snapshot_store.replace(make_snapshot(ACTIVE))

    with (
        snapshot_store.watch_key(KEY_ID, lambda: events.append("first")),
        snapshot_store.watch_key(KEY_ID, lambda: events.append("second")),
    ):
        snapshot_store.replace(make_snapshot(REVOKED, version=2))

    assert sorted(events) == ["first", "second"]


def test_a_watcher_that_has_ended_is_not_notified() -> None:
    snapshot_store, events = make_store(), list[str]()
    snapshot_store.replace(make_snapshot(ACTIVE))
    with snapshot_store.watch_key(KEY_ID, lambda: events.append("ended")):
        pass

    snapshot_store.replace(make_snapshot(REVOKED, version=2))

    assert events == []


def test_a_watcher_of_another_key_is_not_notified() -> None:
    snapshot_store, events = make_store(), list[str]()
    snapshot_store.replace(make_snapshot(ACTIVE, make_credential(OTHER_KEY, key_id="key-2")))

    with snapshot_store.watch_key(KeyId("key-2"), lambda: events.append("ended")):
        snapshot_store.replace(
            make_snapshot(REVOKED, make_credential(OTHER_KEY, key_id="key-2"), version=2)
        )

    assert events == []


def test_a_watcher_of_another_tenant_is_not_notified() -> None:
    snapshot_store, events = make_store(), list[str]()
    snapshot_store.replace(make_snapshot(ACTIVE))
    other_credential = make_credential(OTHER_KEY, key_id="key-of-globex")
    snapshot_store.replace(make_snapshot(other_credential, tenant_id=GLOBEX))

    with snapshot_store.watch_key(other_credential.key_id, lambda: events.append("ended")):
        snapshot_store.replace(make_snapshot(REVOKED, version=2))

    assert events == []


def _with_overrides(
    *overrides: PolicyOverride, indexes: dict[UserId, tuple[int, ...]]
) -> TenantSnapshot:
    """Return a snapshot with a key of Ada, a key of Alice and a service key.

    `indexes` says which of the overrides apply to each user.
    """
    keys = (make_credential(KEY), make_credential(ALICE_KEY, key_id="k2", user_id=ALICE))
    service = make_credential(SERVICE_KEY, key_id="k3", user_id=None)
    return replace(make_snapshot(*keys, service), overrides=overrides, override_indexes=indexes)


def _policy_of(snapshot_store: SnapshotStore, key: ParsedKey) -> TenantPolicy:
    ((_, snapshot),) = snapshot_store.find_credentials(key.lookup_id)
    return snapshot.policy


def test_overrides_restrict_the_policy_of_their_users() -> None:
    snapshot_store = make_store()

    snapshot_store.replace(_with_overrides(NO_CHAT, NO_SRC, indexes={ADA: (0, 1), ALICE: (1,)}))

    assert Mode.CHAT not in _policy_of(snapshot_store, KEY).features
    assert Mode.CHAT in _policy_of(snapshot_store, ALICE_KEY).features
    assert "src/*" in _policy_of(snapshot_store, KEY).content_exclusion["*"]
    assert "src/*" in _policy_of(snapshot_store, ALICE_KEY).content_exclusion["*"]


def test_a_service_key_has_the_policy_of_the_tenant() -> None:
    snapshot_store = make_store()

    snapshot_store.replace(_with_overrides(NO_CHAT, indexes={ADA: (0,)}))

    assert _policy_of(snapshot_store, SERVICE_KEY) == make_policy()


def test_users_with_the_same_overrides_share_a_policy() -> None:
    snapshot_store = make_store()

    snapshot_store.replace(_with_overrides(NO_CHAT, indexes={ADA: (0,), ALICE: (0,)}))

    assert _policy_of(snapshot_store, KEY) is _policy_of(snapshot_store, ALICE_KEY)


def test_a_removed_override_no_longer_applies() -> None:
    snapshot_store = make_store()
    snapshot_store.replace(_with_overrides(NO_CHAT, indexes={ADA: (0,)}))

    snapshot_store.replace(make_snapshot(make_credential(KEY), version=2))

    assert _policy_of(snapshot_store, KEY) == make_policy()
    # The new snapshot has no key of Alice.
    assert snapshot_store.find_credentials(ALICE_KEY.lookup_id) == ()


def _with_budgets(*budgets: HardBudget) -> TenantSnapshot:
    return replace(_with_overrides(indexes={}), spending=SpendingLimits(budgets=budgets))


def _budgets_of(snapshot_store: SnapshotStore, key: ParsedKey) -> list[str]:
    ((_, snapshot),) = snapshot_store.find_credentials(key.lookup_id)
    return [budget.budget_id for budget in snapshot.spending.budgets]


def test_a_credential_has_the_budgets_that_apply_to_its_user() -> None:
    snapshot_store = make_store()

    # Each budget has an ID, a scope, a limit in micros, and the users whose spending counts.
    snapshot_store.replace(
        _with_budgets(
            HardBudget("both", BudgetScope.TEAM, 1, (ADA, ALICE)),
            HardBudget("all", BudgetScope.TENANT, 1),
            HardBudget("of-an-empty-team", BudgetScope.TEAM, 1),
            HardBudget("of-ada", BudgetScope.USER, 1, (ADA,)),
        )
    )

    assert _budgets_of(snapshot_store, KEY) == ["both", "all", "of-ada"]
    assert _budgets_of(snapshot_store, ALICE_KEY) == ["both", "all"]
    assert _budgets_of(snapshot_store, SERVICE_KEY) == ["all"]


def test_the_snapshot_of_a_request_names_no_other_user() -> None:
    snapshot_store = make_store()

    snapshot_store.replace(_with_budgets(HardBudget("team", BudgetScope.TEAM, 1, (ADA, ALICE))))

    ((_, adas_snapshot),) = snapshot_store.find_credentials(KEY.lookup_id)
    ((_, alices_snapshot),) = snapshot_store.find_credentials(ALICE_KEY.lookup_id)
    assert adas_snapshot is alices_snapshot
    assert adas_snapshot.spending.budgets[0].users == ()


def test_users_with_one_policy_and_different_budgets_share_the_policy() -> None:
    snapshot_store = make_store()
    snapshot = _with_overrides(NO_CHAT, indexes={ADA: (0,), ALICE: (0,)})
    budget = HardBudget("b", BudgetScope.USER, 1, (ADA,))

    snapshot_store.replace(replace(snapshot, spending=SpendingLimits(budgets=(budget,))))

    assert _policy_of(snapshot_store, KEY) is _policy_of(snapshot_store, ALICE_KEY)
    assert _budgets_of(snapshot_store, ALICE_KEY) == []
