"""`manage.py rotate_encryption_keys`.

See tenants.security.encryption.rotation and platform/docs/encryption-keys.md.
"""

import argparse
from datetime import datetime, timedelta
from typing import Any, Final

from django.core.management.base import CommandError
from django.utils import timezone

from caret.foundation.crypto.aead import DecryptionFailed
from caret.foundation.environment import BadSetting
from caret.foundation.ids import TenantId
from caret.foundation.management_command import NoSystemChecksCommand
from tenants.security.authorization.directory import list_tenants
from tenants.security.encryption.errors import EncryptionFailed
from tenants.security.encryption.rotation import retire_root_keys, rotate_tenant_keys

_MAX_DAYS: Final = 36_500  # 100 years; far more days would give a cutoff before year 1


class Command(NoSystemChecksCommand):
    help = (
        "Wrap tenant keys with the first of CARET_ROOT_KEYS, and data keys with the current"
        " tenant key. This needs no downtime. If it ends early, run it again to continue."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--tenant", metavar="SLUG", help="rotate only this tenant's keys")
        parser.add_argument(
            "--replace-older-than",
            type=int,
            metavar="DAYS",
            help="first replace tenant keys older than this; 0: all tenant keys",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        now = timezone.now()
        older_than = _compute_cutoff(options["replace_older_than"], now)
        failed_slugs = [
            slug
            for slug, tenant_id in _find_tenants(options["tenant"]).items()
            if not self._rotate_tenant(slug, tenant_id, now=now, older_than=older_than)
        ]
        are_root_keys_retired = self._retire_root_keys(now)
        if failed_slugs:
            raise CommandError(
                f"The encryption keys of {len(failed_slugs)} tenants were not rotated:"
                f" {', '.join(failed_slugs)}. See the errors above."
            )
        if not are_root_keys_retired:
            raise CommandError("Tenant keys were rotated, but no root key was retired: see above.")

    def _rotate_tenant(
        self, slug: str, tenant_id: TenantId, *, now: datetime, older_than: datetime | None
    ) -> bool:
        """Rotate a tenant's keys and print the result. Return whether it succeeded."""
        try:
            result = rotate_tenant_keys(tenant_id=tenant_id, now=now, older_than=older_than)
        except (EncryptionFailed, BadSetting) as error:
            self.stderr.write(f"{slug}: {error}")
            return False
        except DecryptionFailed:
            self.stderr.write(
                f"{slug}: a wrapped key was changed or moved, and cannot be decrypted."
            )
            return False
        self.stdout.write(
            f"{slug}: {result.tenant_keys} tenant keys rewrapped, {result.new_tenant_keys} new,"
            f" {result.data_keys} data keys rewrapped"
        )
        return True

    def _retire_root_keys(self, now: datetime) -> bool:
        """Retire unused root keys and print their IDs. Return whether it succeeded."""
        try:
            retired_ids = retire_root_keys(now=now)
        except (EncryptionFailed, BadSetting) as error:
            self.stderr.write(f"No root key was retired: {error}")
            return False
        for root_key_id in retired_ids:
            self.stdout.write(
                f"{root_key_id} wraps no key any more: remove it from CARET_ROOT_KEYS."
            )
        return True


def _compute_cutoff(days: int | None, now: datetime) -> datetime | None:
    """Return the time before which tenant keys are too old; None: no key is too old."""
    if days is None:
        return None
    if not 0 <= days <= _MAX_DAYS:
        raise CommandError(f"--replace-older-than must be a number of days from 0 to {_MAX_DAYS}.")
    return now - timedelta(days=days)


def _find_tenants(slug: str | None) -> dict[str, TenantId]:
    tenants = list_tenants()
    if slug is None:
        return tenants
    if slug not in tenants:
        raise CommandError(f"There is no tenant {slug}.")
    return {slug: tenants[slug]}
