"""Sealed data can be opened only for its tenant, column and row, until its key is shredded.

Data is sealed with the data key of a scope, such as a user. The tenant key encrypts (wraps) the
data keys. Shredding destroys a key.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest
from django.db import DataError, ProgrammingError, connection, transaction
from django.utils import timezone

from caret.foundation.crypto.aead import DecryptionFailed
from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.models import DataKey, TenantKey
from tenants.security.encryption.envelope import SealContext
from tenants.security.encryption.errors import KeyDestroyed
from tenants.security.encryption.key_cache import key_cache
from tenants.security.encryption.operations import seal_in_scope, shred_scope, shred_tenant
from tenants.security.encryption.queries import find_destruction_proofs, open_sealed
from tests.fixtures.companies import Company, make_company

ROOT = Path(__file__).resolve().parents[3]
SEAL_CONTEXT = SealContext(table="content_object", column="content", row="7")
PLAINTEXT = b"planted text"
ADA, BOB = "user:ada", "user:bob"  # scopes


@pytest.fixture
def acme() -> Company:
    return make_company("acme", {})


@pytest.fixture
def globex() -> Company:
    return make_company("globex", {})


def seal(company: Company, scope: str = ADA) -> bytes:
    return seal_in_scope(
        company.tenant_id, scope, context=SEAL_CONTEXT, data=PLAINTEXT, now=timezone.now()
    )


def unseal(company: Company, sealed: bytes, seal_context: SealContext = SEAL_CONTEXT) -> bytes:
    return open_sealed(company.tenant_id, context=seal_context, envelope=sealed)


def test_sealed_data_can_be_opened(acme: Company) -> None:
    sealed = seal(acme)

    assert b"planted" not in sealed
    assert unseal(acme, sealed) == PLAINTEXT


def test_each_scope_has_one_key(acme: Company) -> None:
    for scope in (ADA, ADA, BOB):
        seal(acme, scope)

    # There is one proof for each data key, also for those that are not destroyed.
    assert [proof.scope for proof in find_destruction_proofs(tenant_id=acme.tenant_id)] == [
        ADA,
        BOB,
    ]


@pytest.mark.parametrize(
    "seal_context",
    [
        replace(SEAL_CONTEXT, row="8"),
        replace(SEAL_CONTEXT, column="name"),
        replace(SEAL_CONTEXT, table="exports"),
    ],
)
def test_data_moved_within_the_tenant_cannot_be_opened(
    acme: Company, seal_context: SealContext
) -> None:
    sealed = seal(acme)

    with pytest.raises(DecryptionFailed):
        unseal(acme, sealed, seal_context)


def test_data_moved_to_another_tenant_cannot_be_opened(acme: Company, globex: Company) -> None:
    sealed = seal(acme)
    seal(globex)

    with pytest.raises(DecryptionFailed):
        unseal(globex, sealed)


def test_data_and_key_moved_to_another_tenant_cannot_be_opened(
    acme: Company, globex: Company
) -> None:
    sealed = seal(acme)
    seal(globex, BOB)
    with tenant_scope(acme.tenant_id):
        stolen_key = DataKey.objects.get(scope=ADA)
    with tenant_scope(globex.tenant_id):
        globex_key = TenantKey.objects.get()
        DataKey.objects.create(
            tenant_id=globex.tenant_id,
            id=stolen_key.id,
            tenant_key_id=globex_key.id,
            scope=stolen_key.scope,
            wrapped=stolen_key.wrapped,
            fingerprint=stolen_key.fingerprint,
            canary=stolen_key.canary,
            created_at=stolen_key.created_at,
        )

    with pytest.raises(DecryptionFailed):
        unseal(globex, sealed)


def test_a_wrapped_key_moved_to_another_scope_cannot_be_used(acme: Company) -> None:
    seal(acme, ADA)
    sealed = seal(acme, BOB)
    with tenant_scope(acme.tenant_id):
        ada = DataKey.objects.get(scope=ADA)
        DataKey.objects.filter(scope=BOB).update(wrapped=ada.wrapped)

    with pytest.raises(DecryptionFailed):
        unseal(acme, sealed)


def test_shredding_a_scope_keeps_other_scopes(acme: Company) -> None:
    ada, bob = seal(acme, ADA), seal(acme, BOB)

    shredded = shred_scope(tenant_id=acme.tenant_id, scope=ADA, now=timezone.now())

    assert [key.scope for key in shredded] == [ADA]
    with pytest.raises(KeyDestroyed):
        unseal(acme, ada)
    assert unseal(acme, bob) == PLAINTEXT


def test_shredding_a_scope_includes_only_the_scopes_below_it(acme: Company) -> None:
    below, sibling = seal(acme, f"{ADA}/content"), seal(acme, f"{ADA}-2/content")

    shredded = shred_scope(tenant_id=acme.tenant_id, scope=ADA, now=timezone.now())

    assert [key.scope for key in shredded] == [f"{ADA}/content"]
    assert [
        proof.opens for proof in find_destruction_proofs(tenant_id=acme.tenant_id, scope=ADA)
    ] == [False]
    with pytest.raises(KeyDestroyed):
        unseal(acme, below)
    assert unseal(acme, sibling) == PLAINTEXT


def test_shredding_keeps_another_tenants_scope_of_the_same_name(
    acme: Company, globex: Company
) -> None:
    seal(acme)
    sealed = seal(globex)

    shred_scope(tenant_id=acme.tenant_id, scope=ADA, now=timezone.now())

    assert unseal(globex, sealed) == PLAINTEXT


def test_data_sealed_after_shredding_gets_a_new_key(acme: Company) -> None:
    old = seal(acme)
    shred_scope(tenant_id=acme.tenant_id, scope=ADA, now=timezone.now())

    new = seal(acme)

    assert unseal(acme, new) == PLAINTEXT
    with pytest.raises(KeyDestroyed):
        unseal(acme, old)


def test_a_shredded_tenant_can_neither_open_nor_seal_data(acme: Company) -> None:
    sealed = seal(acme)

    shredded = shred_tenant(tenant_id=acme.tenant_id, now=timezone.now())

    assert [key.scope for key in shredded] == [ADA, None]  # None: the tenant key
    with pytest.raises(KeyDestroyed):
        unseal(acme, sealed)
    for scope in (ADA, BOB):
        with pytest.raises(KeyDestroyed):
            seal(acme, scope)


def test_shredding_a_tenant_deletes_all_its_wrapped_keys(acme: Company, globex: Company) -> None:
    seal(acme)
    seal(globex)

    shred_tenant(tenant_id=acme.tenant_id, now=timezone.now())

    assert _count_wrapped_keys(acme.tenant_id) == 0
    assert _count_wrapped_keys(globex.tenant_id) == 2  # the tenant key and a data key


def test_the_destruction_proof_shows_that_a_key_opens_nothing(acme: Company) -> None:
    seal(acme)
    (before,) = find_destruction_proofs(tenant_id=acme.tenant_id, scope=ADA)

    (shredded,) = shred_scope(tenant_id=acme.tenant_id, scope=ADA, now=timezone.now())

    (after,) = find_destruction_proofs(tenant_id=acme.tenant_id, scope=ADA)
    assert (before.opens, before.destroyed_at) == (True, None)
    assert after.opens is False
    assert after.destroyed_at is not None
    assert shredded.fingerprint == before.fingerprint == after.fingerprint


def test_a_key_restored_from_a_backup_is_reported_as_usable(acme: Company) -> None:
    """A deletion certificate contains this check of the key, so the check must be able to fail."""
    seal(acme)
    with tenant_scope(acme.tenant_id):
        wrapped_key = DataKey.objects.get(scope=ADA).wrapped
    shred_scope(tenant_id=acme.tenant_id, scope=ADA, now=timezone.now())

    with tenant_scope(acme.tenant_id):
        DataKey.objects.filter(scope=ADA).update(wrapped=wrapped_key, destroyed_at=None)

    assert [proof.opens for proof in find_destruction_proofs(tenant_id=acme.tenant_id)] == [True]


# Opens the data once, and again after a line of input.
_OTHER_PROCESS = """
import sys, django
django.setup()
from tenants.security.encryption.envelope import SealContext
from tenants.security.encryption.errors import KeyDestroyed
from tenants.security.encryption.queries import open_sealed
tenant_id, sealed = sys.argv[1], bytes.fromhex(sys.argv[2])
context = SealContext("content_object", "content", "7")
for _ in range(2):
    try:
        print(open_sealed(tenant_id, context=context, envelope=sealed))
    except KeyDestroyed:
        print("destroyed")
    sys.stdout.flush()
    sys.stdin.readline()
"""


def _shred_scope(company: Company) -> None:
    shred_scope(tenant_id=company.tenant_id, scope=ADA, now=timezone.now())


def _shred_tenant(company: Company) -> None:
    shred_tenant(tenant_id=company.tenant_id, now=timezone.now())


@pytest.mark.parametrize("shred", [_shred_scope, _shred_tenant])
def test_shredding_takes_effect_in_another_process(
    acme: Company, shred: Callable[[Company], None]
) -> None:
    arguments = [acme.tenant_id, seal(acme).hex()]
    paths = os.pathsep.join([str(ROOT), str(ROOT / "platform")])
    with subprocess.Popen(
        [sys.executable, "-c", _OTHER_PROCESS, *arguments],
        env={**os.environ, "PYTHONPATH": paths, "DJANGO_SETTINGS_MODULE": "caret.settings"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        before = process.stdout.readline().strip()
        shred(acme)
        process.stdin.write("\n")
        process.stdin.flush()
        after = process.stdout.readline().strip()
        process.stdin.close()

    assert (before, after) == (repr(PLAINTEXT), "destroyed")


def test_shredding_removes_the_tenants_key_from_the_cache(acme: Company) -> None:
    seal(acme)
    with tenant_scope(acme.tenant_id):
        key_id = TenantKey.objects.get().id
    cached_key = key_cache.get(key_id)

    shred_tenant(tenant_id=acme.tenant_id, now=timezone.now())

    assert cached_key is not None
    assert key_cache.get(key_id) is None


def test_a_rolled_back_shredding_has_no_effect(acme: Company) -> None:
    sealed = seal(acme)

    with transaction.atomic():
        shred_scope(tenant_id=acme.tenant_id, scope=ADA, now=timezone.now())
        transaction.set_rollback(True)

    assert unseal(acme, sealed) == PLAINTEXT


def test_concurrent_first_seals_create_one_key(acme: Company) -> None:
    sealed: list[bytes] = []

    def seal_first_data() -> None:
        sealed.append(seal(acme))
        connection.close()

    threads = [Thread(target=seal_first_data) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [unseal(acme, sealed_text) for sealed_text in sealed] == [PLAINTEXT] * 6
    assert len(find_destruction_proofs(tenant_id=acme.tenant_id)) == 1


@pytest.mark.parametrize("model", [TenantKey, DataKey])
def test_keys_cannot_be_deleted(acme: Company, model: type[TenantKey | DataKey]) -> None:
    seal(acme)

    with pytest.raises(ProgrammingError, match="permission denied"), tenant_scope(acme.tenant_id):
        model.objects.all().delete()


def test_keys_are_not_visible_without_their_tenant(acme: Company, globex: Company) -> None:
    seal(acme)

    with tenant_scope(globex.tenant_id):
        assert (TenantKey.objects.count(), DataKey.objects.count()) == (0, 0)
    # Outside of a scope, the database setting with the tenant's ID is missing, or it is empty.
    with pytest.raises((ProgrammingError, DataError)), transaction.atomic():
        DataKey.objects.count()


def _count_wrapped_keys(tenant_id: TenantId) -> int:
    """Return the number of tenant and data keys that are not destroyed."""
    with tenant_scope(tenant_id):
        return sum(model.objects.exclude(wrapped=None).count() for model in (TenantKey, DataKey))
