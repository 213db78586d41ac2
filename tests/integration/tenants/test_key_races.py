"""Tenant keys are rotated while other processes seal data, open it and create keys."""

from threading import Event, Thread, current_thread
from typing import Any
from uuid import UUID

import pytest
from django.db import OperationalError, connection
from django.utils import timezone

from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.models import DataKey, TenantKey
from tenants.security.encryption import key_creation, key_unwrapping, rotation
from tenants.security.encryption.envelope import generate_key
from tenants.security.encryption.operations import shred_tenant
from tests.fixtures.companies import Company, make_company
from tests.integration.tenants.sealed import PLAINTEXT, clear_key_cache, rotate, seal, unseal
from tests.integration.tenants.test_billing_profile import is_lock_awaited
from tests.stack.waiting import wait_until


@pytest.fixture
def acme() -> Company:
    return make_company("acme", {})


def test_sealing_and_opening_work_while_keys_are_replaced(acme: Company) -> None:
    stop = Event()
    failures: list[BaseException] = []

    def seal_and_unseal() -> None:
        number = 0
        try:
            while not stop.is_set():
                number += 1
                assert unseal(acme, seal(acme, f"user:{number}")) == PLAINTEXT
        except BaseException as failure:  # noqa: BLE001  # the main thread checks it
            failures.append(failure)
        finally:
            connection.close()

    threads = [Thread(target=seal_and_unseal) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(10):
        rotate(acme, replacing=True)
    stop.set()
    for thread in threads:
        thread.join()
    rotate(acme)  # rewraps data keys that the threads created during the last rotation

    assert failures == []
    with tenant_scope(acme.tenant_id):
        current_key = TenantKey.objects.exclude(wrapped=None).get()
        assert set(DataKey.objects.values_list("tenant_key_id", flat=True)) == {current_key.id}


def test_a_key_in_use_is_not_destroyed_by_a_concurrent_rotation(
    acme: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal(acme)
    original = key_creation._make_data_key
    outcomes: list[str] = []

    def rotate_meanwhile() -> None:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SET lock_timeout = '100ms'")
            rotate(acme, replacing=True)
            outcomes.append("rotated")
        except OperationalError:  # the lock timeout
            outcomes.append("waited")
        finally:
            connection.close()

    def make_while_another_rotates(*args: Any) -> DataKey:
        # The main thread has locked the tenant key, so the rotation in the other thread must wait.
        thread = Thread(target=rotate_meanwhile)
        thread.start()
        thread.join()
        return original(*args)

    with monkeypatch.context() as patch:
        patch.setattr(key_creation, "_make_data_key", make_while_another_rotates)
        sealed = seal(acme, "user:bob")
    rotate(acme, replacing=True)

    assert outcomes == ["waited"]
    assert unseal(acme, sealed) == PLAINTEXT


def rotate_in_thread(company: Company) -> Thread:
    """Rotate the keys in another thread, as another process would."""

    def run() -> None:
        try:
            rotate(company, replacing=True)
        finally:
            connection.close()

    thread = Thread(target=run)
    thread.start()
    return thread


def test_data_can_be_opened_if_its_key_is_rewrapped_between_two_reads(
    acme: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The data key is read before the rotation, and its tenant key after the old one is
    destroyed."""
    sealed = seal(acme)
    original = key_unwrapping._get_or_unwrap_tenant_key
    rotations: list[Thread] = []
    clear_key_cache()

    def look_up_after_a_rotation(tenant_id: TenantId, key_id: UUID) -> bytes:
        if not rotations:
            rotations.append(rotate_in_thread(acme))
            rotations[0].join()
        return original(tenant_id, key_id)

    monkeypatch.setattr(key_unwrapping, "_get_or_unwrap_tenant_key", look_up_after_a_rotation)

    assert unseal(acme, sealed) == PLAINTEXT


def test_sealing_succeeds_after_waiting_for_two_rotations(
    acme: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal(acme)
    original, is_locked = key_creation.create_tenant_key, Event()
    rotations: list[Thread] = []

    def make_slowly(**fields: Any) -> TenantKey:
        is_locked.set()
        wait_until(is_lock_awaited, timeout_s=300)  # for the key that is being retired
        return original(**fields)

    def rotate_before_the_lock(execute: Any, sql: str, *arguments: Any) -> Any:
        # The main thread is about to lock the tenant key. Twice, a rotation locks the key first.
        if "FOR NO KEY UPDATE" in sql and "keyring_tenant_key" in sql and len(rotations) < 2:
            is_locked.clear()
            rotations.append(rotate_in_thread(acme))
            assert is_locked.wait(timeout=300)
        return execute(sql, *arguments)

    monkeypatch.setattr(rotation, "create_tenant_key", make_slowly)
    with connection.execute_wrapper(rotate_before_the_lock):
        sealed = seal(acme, "user:bob")
    for thread in rotations:
        thread.join()

    assert len(rotations) == 2
    assert unseal(acme, sealed) == PLAINTEXT


def test_shredding_a_tenant_destroys_the_new_key_of_a_concurrent_rotation(
    acme: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal(acme)
    original, is_locked = key_creation.create_tenant_key, Event()

    def make_slowly(**fields: Any) -> TenantKey:
        is_locked.set()
        wait_until(is_lock_awaited, timeout_s=300)  # for the key that is being retired
        return original(**fields)

    monkeypatch.setattr(rotation, "create_tenant_key", make_slowly)
    rotating = rotate_in_thread(acme)
    assert is_locked.wait(timeout=300)
    shredded = shred_tenant(tenant_id=acme.tenant_id, now=timezone.now())
    rotating.join()

    # A data key, and two tenant keys, which have no scope: the old one and the new one.
    assert [key.scope for key in shredded] == ["user:ada", None, None]
    with tenant_scope(acme.tenant_id):
        assert TenantKey.objects.count() == 2
        assert not TenantKey.objects.exclude(wrapped=None).exists()
        assert not DataKey.objects.exclude(wrapped=None).exists()


def test_creating_a_first_key_during_a_rotation_does_not_deadlock(
    acme: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread `creator` has found no key. Meanwhile, the main thread creates the first key, and
    a third thread rotates it."""
    original = key_creation.create_tenant_key
    is_creating, may_create, is_replacing = Event(), Event(), Event()
    sealed_by_creator: list[bytes] = []

    def seal_in_creator() -> None:
        try:
            sealed_by_creator.append(seal(acme, "user:bob"))
        finally:
            connection.close()

    creator = Thread(target=seal_in_creator)

    def generate_key_when_allowed() -> bytes:
        if current_thread() is creator and not may_create.is_set():
            is_creating.set()
            assert may_create.wait(timeout=300)
        return generate_key()

    def make_slowly(**fields: Any) -> TenantKey:
        is_replacing.set()
        wait_until(is_lock_awaited, timeout_s=300)  # until the creator waits for this thread
        return original(**fields)

    monkeypatch.setattr(key_creation, "generate_key", generate_key_when_allowed)
    monkeypatch.setattr(rotation, "create_tenant_key", make_slowly)
    creator.start()
    assert is_creating.wait(timeout=300)
    sealed = seal(acme, "user:ada")
    rotating = rotate_in_thread(acme)
    assert is_replacing.wait(timeout=300)
    may_create.set()
    creator.join()
    rotating.join()

    assert [unseal(acme, text) for text in [sealed, *sealed_by_creator]] == [PLAINTEXT] * 2
    with tenant_scope(acme.tenant_id):
        assert TenantKey.objects.exclude(retired_at=None).count() == 1
