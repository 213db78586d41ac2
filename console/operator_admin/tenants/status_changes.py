"""The changes of a tenant's status that its page offers, by the present status."""

from dataclasses import dataclass
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from caret.contracts.snapshot import TenantStatus


@dataclass(frozen=True, slots=True)
class StatusChange:
    present: TenantStatus
    target: TenantStatus
    label: Promise
    effect: Promise
    variant: str  # of the button
    is_final: bool = False  # asks for the slug, because nobody can undo it


_CHANGES: Final = (
    StatusChange(
        TenantStatus.ACTIVE,
        TenantStatus.SUSPENDED,
        _("Suspend"),
        _("Gateways reject its API keys within a second. Members can still sign in."),
        "danger",
    ),
    StatusChange(
        TenantStatus.SUSPENDED,
        TenantStatus.ACTIVE,
        _("Resume"),
        _("Gateways accept its API keys again within a second."),
        "primary",
    ),
    StatusChange(
        TenantStatus.SUSPENDED,
        TenantStatus.CLOSING,
        _("Begin closing"),
        _("Members can only read, export and erase data. You can still stop this."),
        "danger",
    ),
    StatusChange(
        TenantStatus.CLOSING,
        TenantStatus.SUSPENDED,
        _("Stop closing"),
        _("The tenant is suspended again."),
        "primary",
    ),
    StatusChange(
        TenantStatus.CLOSING,
        TenantStatus.CLOSED,
        _("Close for good"),
        _("Nobody can sign in to the tenant any more. You cannot undo this."),
        "danger",
        is_final=True,
    ),
)


def changes_from(present: TenantStatus) -> list[StatusChange]:
    return [change for change in _CHANGES if change.present is present]
