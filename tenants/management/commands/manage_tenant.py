"""`manage.py manage_tenant SLUG --suspend | --activate | --begin-closing | --close | --purge-cache
|
--drop-identity-provider`: for the platform's operator."""

import argparse
from datetime import datetime
from typing import Any, Final

from django.core.management.base import CommandError
from django.utils import timezone

from caret.contracts.snapshot import TenantStatus
from caret.foundation.management_command import NoSystemChecksCommand
from tenants.base.errors import DomainError, NotFound
from tenants.identity.members.tenant_status import purge_cache, set_status
from tenants.identity.sso.operations import remove_provider
from tenants.identity.sso.queries import get_rules
from tenants.security.authorization.actor import Actor, system_actor
from tenants.security.authorization.directory import find_tenant


class Command(NoSystemChecksCommand):
    help = "Suspends, activates or closes a tenant, or has what engines cached for it forgotten."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("slug")
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--suspend", action="store_true", help="its keys are refused")
        what.add_argument("--activate", action="store_true", help="its keys are taken again")
        what.add_argument(
            "--begin-closing", action="store_true", help="only export and erasure are left"
        )
        what.add_argument("--close", action="store_true", help="nobody signs in to it any more")
        what.add_argument("--purge-cache", action="store_true", help="its prompts are forgotten")
        what.add_argument(
            "--drop-identity-provider",
            action="store_true",
            help="its people sign in by password again: for who is locked out by it",
        )
        parser.add_argument("--reason", default="", help="for the audit trail")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant_id = find_tenant(slug=options["slug"])
        if tenant_id is None:
            raise CommandError(f"There is no tenant {options['slug']}.")
        try:
            told = _do(system_actor(tenant_id), options)
        except DomainError as error:
            raise CommandError(error.message) from error
        self.stdout.write(told)


_STATUSES: Final = {
    "suspend": TenantStatus.SUSPENDED,
    "activate": TenantStatus.ACTIVE,
    "begin_closing": TenantStatus.CLOSING,
    "close": TenantStatus.CLOSED,
}


def _do(actor: Actor, options: dict[str, Any]) -> str:
    slug, reason, now = options["slug"], options["reason"], timezone.now()
    if options["purge_cache"]:
        epoch = purge_cache(actor=actor, reason=reason, now=now)
        return f"{slug} begins cache epoch {epoch}; what was cached before is not found again."
    if options["drop_identity_provider"]:
        return _drop_identity_provider(actor, reason, now)
    status = next(status for option, status in _STATUSES.items() if options[option])
    set_status(actor=actor, status=status, reason=reason, now=now)
    return f"{slug} is {status.value}; gateways act on it within a second."


def _drop_identity_provider(actor: Actor, reason: str, now: datetime) -> str:
    """Raises Invalid, NotFound."""
    held = get_rules(actor=actor).provider
    if held is None:
        raise NotFound("This tenant has no identity provider.")
    remove_provider(actor=actor, reason=reason, now=now)
    return f"{held.issuer} lets nobody in any more; who has a password signs in by it."
