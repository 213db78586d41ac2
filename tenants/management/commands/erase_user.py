"""`manage.py erase_user TENANT PERSON --reason WHY`: see platform/docs/retention.md."""

import argparse
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from caret.foundation.management_command import NoSystemChecksCommand
from tenants.base.errors import DomainError
from tenants.compliance.data_subjects.operations import ErasureRequest, request_user_erasure
from tenants.compliance.data_subjects.queries import find_unfinished_erasure, find_user_id
from tenants.management.erasure_run import run_requested_erasure
from tenants.security.authorization.actor import build_system_actor
from tenants.security.authorization.directory import find_tenant


class Command(NoSystemChecksCommand):
    help = (
        "Destroy a user's encryption keys in a tenant, then erase the user. After a crash, run it"
        " again."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("tenant", metavar="TENANT", help="slug of the tenant")
        parser.add_argument("person", metavar="PERSON", help="an e-mail address or a user ID")
        parser.add_argument("--reason", required=True, help="reason for the audit log")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant_id = find_tenant(slug=options["tenant"])
        if tenant_id is None:
            raise CommandError(f"There is no tenant {options['tenant']}.")
        actor, now = build_system_actor(tenant_id), timezone.now()
        try:
            user_id = find_user_id(options["person"])
            erasure_request = ErasureRequest(
                user_id, options["reason"], is_rejected_under_hold=True
            )
            erasure_id = find_unfinished_erasure(
                tenant_id=tenant_id, user_id=user_id
            ) or request_user_erasure(actor=actor, erasure_request=erasure_request, now=now)
        except DomainError as error:
            raise CommandError(error.message) from error
        self.stdout.write(
            run_requested_erasure(tenant_id=tenant_id, erasure_id=erasure_id, now=now)
        )
