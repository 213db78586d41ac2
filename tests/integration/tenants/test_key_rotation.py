"""Tenant keys and root keys are rotated while in use; data sealed before can still be opened."""

import secrets
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import boto3
import pytest
from django.core.management import CommandError, call_command
from django.db import transaction
from django.utils import timezone
from moto import mock_aws
from pytest_django import Settings

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.management.commands import rotate_encryption_keys
from tenants.models import AuditEntry, DataKey, RootKeyUse, TenantKey
from tenants.security.encryption import rotation
from tenants.security.encryption.errors import KeyDestroyed, RootKeyMissing
from tenants.security.encryption.operations import shred_scope, shred_tenant
from tenants.security.encryption.root_keys import load_root_keys
from tenants.security.encryption.rotation import RotationResult, retire_root_keys
from tenants.security.encryption.startup_check import find_problems, record_root_key_use
from tests.fixtures.companies import Company, make_company
from tests.integration.tenants.sealed import PLAINTEXT, clear_key_cache, rotate, seal, unseal


@pytest.fixture
def acme() -> Company:
    return make_company("acme", {})


@pytest.fixture
def new_root_key(tmp_path: Path, settings: Settings) -> Iterator[str]:
    """Yield the name of another root key. Afterwards, wrap all keys with the default root key,
    `root-secret`, again."""
    file = tmp_path / "root"
    file.write_text(secrets.token_hex(32))
    name = f"file:{file}"
    yield name
    configure_root_keys(settings, "root-secret", name)
    call_command("rotate_encryption_keys", stdout=StringIO())
    assert not RootKeyUse.objects.filter(
        id=configure_only_root_key(settings, name), retired_at=None
    ).exists()


def configure_root_keys(settings: Settings, *names: str) -> None:
    """Configure root keys, the current one first."""
    settings.ROOT_KEYS = list(names)
    clear_key_cache()


def configure_only_root_key(settings: Settings, name: str) -> str:
    """Configure this root key and no other, and return its ID."""
    configure_root_keys(settings, name)
    return load_root_keys().current.id


def test_tenant_keys_are_rewrapped_with_a_new_root_key(
    acme: Company, settings: Settings, new_root_key: str
) -> None:
    sealed = seal(acme)
    configure_root_keys(settings, new_root_key, "root-secret")

    done = rotate(acme)

    configure_root_keys(settings, new_root_key)
    assert done == RotationResult(tenant_keys=1)
    assert unseal(acme, sealed) == PLAINTEXT
    assert unseal(acme, seal(acme, "user:bob")) == PLAINTEXT


def test_the_old_root_key_is_useless_after_rotation(
    acme: Company, settings: Settings, new_root_key: str
) -> None:
    sealed = seal(acme)
    configure_root_keys(settings, new_root_key, "root-secret")
    rotate(acme)

    configure_root_keys(settings, "root-secret")

    with pytest.raises(RootKeyMissing):
        unseal(acme, sealed)


def test_a_new_root_key_alone_is_useless_before_rotation(
    acme: Company, settings: Settings, new_root_key: str
) -> None:
    sealed = seal(acme)

    configure_root_keys(settings, new_root_key)

    with pytest.raises(RootKeyMissing):
        unseal(acme, sealed)
    assert any("CARET_ROOT_KEYS" in problem for problem in find_problems())


def test_an_unused_root_key_can_be_removed(
    acme: Company, settings: Settings, new_root_key: str
) -> None:
    new_id = configure_only_root_key(settings, new_root_key)
    configure_root_keys(settings, new_root_key, "root-secret")
    seal(acme)
    retired_ids = retire_root_keys(now=timezone.now())
    configure_root_keys(settings, "root-secret", new_root_key)

    call_command("rotate_encryption_keys", "--tenant", acme.slug, stdout=(output := StringIO()))

    assert new_id not in retired_ids  # it still wraps acme's key
    assert f"{new_id} wraps no key any more" in output.getvalue()
    configure_root_keys(settings, "root-secret")
    assert find_problems() == []


def test_the_command_fails_if_no_root_key_can_be_retired(
    acme: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: object) -> list[str]:
        raise RootKeyMissing("planted")

    monkeypatch.setattr(rotate_encryption_keys, "retire_root_keys", fail)

    with pytest.raises(CommandError, match="no root key was retired"):
        call_command(
            "rotate_encryption_keys",
            *("--tenant", acme.slug),
            stdout=StringIO(),
            stderr=(errors := StringIO()),
        )
    assert "No root key was retired: planted" in errors.getvalue()


def test_the_current_root_key_is_never_retired(settings: Settings, new_root_key: str) -> None:
    new_id = configure_only_root_key(settings, new_root_key)
    configure_root_keys(settings, new_root_key, "root-secret")
    with transaction.atomic():
        record_root_key_use(load_root_keys().current, now=timezone.now())  # wraps nothing yet

    assert new_id not in retire_root_keys(now=timezone.now())


def test_keys_are_rotated_to_a_kms_key_and_back(
    acme: Company, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    sealed = seal(acme)
    with mock_aws():
        kms = f"kms:{boto3.client('kms').create_key()['KeyMetadata']['KeyId']}"
        configure_root_keys(settings, kms, "root-secret")
        to_kms = rotate(acme)
        configure_root_keys(settings, kms)
        opened_with_kms = unseal(acme, sealed)
        configure_root_keys(settings, "root-secret", kms)
        from_kms = rotate(acme)
        retire_root_keys(now=timezone.now())

    configure_root_keys(settings, "root-secret")
    assert (to_kms, from_kms) == (RotationResult(tenant_keys=1), RotationResult(tenant_keys=1))
    assert opened_with_kms == unseal(acme, sealed) == PLAINTEXT
    assert find_problems() == []


def test_replacing_a_tenant_key_rewraps_data_keys_and_destroys_the_old_one(acme: Company) -> None:
    sealed = [seal(acme, scope) for scope in ("user:ada", "user:bob", "day:2026-11-21")]

    done = rotate(acme, replacing=True)

    assert done == RotationResult(new_tenant_keys=1, data_keys=3)
    assert [unseal(acme, sealed_text) for sealed_text in sealed] == [PLAINTEXT] * 3
    with tenant_scope(acme.tenant_id):
        old, new = TenantKey.objects.order_by("created_at")
        assert old.wrapped is None
        assert set(DataKey.objects.values_list("tenant_key_id", flat=True)) == {new.id}


def test_a_key_that_still_wraps_data_keys_is_not_destroyed(
    acme: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed = seal(acme)
    monkeypatch.setattr(rotation, "_rewrap_data_key_batch", lambda _tenant_id: 0)

    rotate(acme, replacing=True)

    assert unseal(acme, sealed) == PLAINTEXT


def test_rotation_does_not_restore_shredded_keys(acme: Company) -> None:
    sealed = seal(acme)
    seal(acme, "user:bob")
    shred_scope(tenant_id=acme.tenant_id, scope="user:ada", now=timezone.now())

    done = rotate(acme, replacing=True)

    assert done.data_keys == 1
    with pytest.raises(KeyDestroyed):
        unseal(acme, sealed)


def test_rotation_creates_no_key_for_a_shredded_tenant(acme: Company) -> None:
    seal(acme)
    shred_tenant(tenant_id=acme.tenant_id, now=timezone.now())

    assert rotate(acme, replacing=True) == RotationResult()


def test_an_interrupted_rotation_is_finished_by_the_next_run(
    acme: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed = [seal(acme, f"user:{number}") for number in range(5)]
    monkeypatch.setattr(rotation, "BATCH", 2)
    rewrap = rotation._rewrap_data_key
    rewrapped: list[DataKey] = []

    def stop_at_the_fourth(row: DataKey, in_force: TenantKey) -> None:
        rewrapped.append(row)
        if len(rewrapped) == 4:
            raise KeyboardInterrupt
        rewrap(row, in_force)

    with monkeypatch.context() as patch:
        patch.setattr(rotation, "_rewrap_data_key", stop_at_the_fourth)
        with pytest.raises(KeyboardInterrupt):
            rotate(acme, replacing=True)
    texts_before_next_run = [unseal(acme, sealed_text) for sealed_text in sealed]

    done = rotate(acme)

    assert done == RotationResult(data_keys=3)  # the first batch of two was complete
    assert (
        texts_before_next_run
        == [unseal(acme, sealed_text) for sealed_text in sealed]
        == [PLAINTEXT] * 5
    )


def test_rotation_does_not_affect_another_tenant(acme: Company) -> None:
    globex = make_company("globex", {})
    sealed = seal(globex)
    with tenant_scope(globex.tenant_id):
        before = list(TenantKey.objects.values_list("id", "wrapped"))

    rotate(acme, replacing=True)

    with tenant_scope(globex.tenant_id):
        assert list(TenantKey.objects.values_list("id", "wrapped")) == before
    assert unseal(globex, sealed) == PLAINTEXT


def test_each_replacement_is_audited_without_key_material(acme: Company) -> None:
    seal(acme)

    rotate(acme, replacing=True)

    with tenant_scope(acme.tenant_id):
        entry = AuditEntry.objects.get(action="encryption.tenant_key_replaced")
        old, new = TenantKey.objects.order_by("created_at")
    assert (entry.before, entry.after) == ({"tenant_key": str(old.id)}, {"tenant_key": str(new.id)})


def test_the_command_replaces_keys_of_the_given_age(acme: Company) -> None:
    seal(acme)
    outputs = [StringIO(), StringIO()]

    for days, output in zip(("1", "0"), outputs, strict=True):
        call_command(
            "rotate_encryption_keys",
            "--tenant",
            acme.slug,
            "--replace-older-than",
            days,
            stdout=output,
        )

    assert "0 tenant keys rewrapped, 0 new, 0 data keys" in outputs[0].getvalue()
    assert "0 tenant keys rewrapped, 1 new, 1 data keys" in outputs[1].getvalue()


def test_the_command_names_the_tenants_that_failed(
    acme: Company, settings: Settings, new_root_key: str
) -> None:
    seal(acme)
    configure_root_keys(settings, new_root_key)

    with pytest.raises(CommandError, match=acme.slug):
        call_command(
            "rotate_encryption_keys",
            "--tenant",
            acme.slug,
            stdout=StringIO(),
            stderr=(errors := StringIO()),
        )

    assert "CARET_ROOT_KEYS lacks the root key" in errors.getvalue()


@pytest.mark.parametrize(
    "arguments", [["--tenant", "nobody-at-all"], ["--replace-older-than", "-1"]]
)
def test_the_command_rejects_invalid_arguments(arguments: list[str]) -> None:
    with pytest.raises(CommandError):
        call_command("rotate_encryption_keys", *arguments, stdout=StringIO())
