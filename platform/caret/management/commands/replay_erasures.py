"""`manage.py replay_erasures`: see platform/docs/backup.md."""

from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from caret.foundation.management_command import NoSystemChecksCommand
from tenants.base.tombstones import WrongStore
from tenants.compliance.data_subjects.replay_after_restore import replay_erasures
from tenants.security.encryption.destroyed_keys import replay_destruction


class Command(NoSystemChecksCommand):
    help = (
        "Repeat the erasures that a restored backup has undone. Run this before you start any"
        " process of Caret."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        now = timezone.now()
        try:
            num_encryption_keys = replay_destruction(now=now)
            num_erasures = replay_erasures(now=now)
        except WrongStore as error:
            raise CommandError(str(error)) from error
        self.stdout.write(
            f"{num_encryption_keys} encryption keys were destroyed again,"
            f" {num_erasures} erasures were requested again."
        )
