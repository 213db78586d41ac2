"""`manage.py erase_tenant TENANT --confirm TENANT --reason WHY`: see platform/docs/retention.md."""

import argparse
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from caret.foundation.management_command import NoSystemChecksCommand
from tenants.base.errors import DomainError
from tenants.compliance.data_subjects.operations import request_tenant_erasure
from tenants.compliance.data_subjects.queries import find_unfinished_erasure
from tenants.management.erasure_run import run_requested_erasure
from tenants.security.authorization.actor import build_system_actor
from tenants.security.authorization.directory import find_tenant


class Command(NoSystemChecksCommand):
    help = (
        "Destroy a closed tenant's encryption keys, then delete its data. After a crash, run it"
        " again."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("tenant", metavar="TENANT", help="slug of the tenant")
        parser.add_argument(
            "--confirm", required=True, metavar="TENANT", help="the slug again, to confirm"
        )
        parser.add_argument("--reason", required=True, help="reason for the audit log")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["confirm"] != options["tenant"]:
            raise CommandError("Nothing was erased: --confirm must repeat the tenant's slug.")
        tenant_id = find_tenant(slug=options["tenant"])
        if tenant_id is None:
            raise CommandError(f"There is no tenant {options['tenant']}.")
        actor, now = build_system_actor(tenant_id), timezone.now()
        try:
            erasure_id = find_unfinished_erasure(
                tenant_id=tenant_id, user_id=None
            ) or request_tenant_erasure(actor=actor, reason=options["reason"], now=now)
        except DomainError as error:
            raise CommandError(error.message) from error
        self.stdout.write(
            run_requested_erasure(tenant_id=tenant_id, erasure_id=erasure_id, now=now)
        )
