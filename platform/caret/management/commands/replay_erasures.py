"""`manage.py replay_erasures`: see platform/docs/backup.md."""

from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from caret.foundation.management_command import UncheckedCommand
from tenants.base.tombstones import NotTheStore
from tenants.compliance.data_subjects.replay_after_restore import demand_again
from tenants.security.encryption.destroyed_keys import destroy_again


class Command(UncheckedCommand):
    help = "After a restore, before anything is started: what was destroyed and erased since goes."

    def handle(self, *args: Any, **options: Any) -> None:
        now = timezone.now()
        try:
            num_keys = destroy_again(now=now)
            num_erasures = demand_again(now=now)
        except NotTheStore as error:
            raise CommandError(str(error)) from error
        self.stdout.write(
            f"{num_keys} keys were destroyed again, {num_erasures} erasures demanded again."
        )
