"""Command for the platform's operator that changes a tenant's status.

`manage.py manage_tenant SLUG --suspend | --activate | --begin-closing | --close | --purge-cache |
--drop-identity-provider`
"""

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
    help = "Suspend, activate or close a tenant, purge its cache, or remove its identity provider."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("slug")
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--suspend", action="store_true", help="reject its API keys")
        what.add_argument("--activate", action="store_true", help="accept its API keys again")
        what.add_argument(
            "--begin-closing", action="store_true", help="allow only reading, export and erasure"
        )
        what.add_argument("--close", action="store_true", help="end sign-in; cannot be undone")
        what.add_argument("--purge-cache", action="store_true", help="purge its prefix cache")
        what.add_argument(
            "--drop-identity-provider",
            action="store_true",
            help="remove its identity provider, so that users can sign in with passwords",
        )
        parser.add_argument("--reason", default="", help="reason for the audit log")

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
        return (
            f"{slug} begins cache epoch {epoch}. Earlier prefix cache entries are no longer used."
        )
    if options["drop_identity_provider"]:
        return _drop_identity_provider(actor, reason, now)
    status = next(status for option, status in _STATUSES.items() if options[option])
    set_status(actor=actor, status=status, reason=reason, now=now)
    return f"{slug} is {status.value}. Gateways apply this within a second."


def _drop_identity_provider(actor: Actor, reason: str, now: datetime) -> str:
    """Remove the identity provider and return the output. Raises InvalidValue, NotFound."""
    held = get_rules(actor=actor).provider
    if held is None:
        raise NotFound("This tenant has no identity provider.")
    remove_provider(actor=actor, reason=reason, now=now)
    return f"Removed {held.issuer}. Users sign in with their passwords again."
