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
    has_grace_period: bool = False  # asks for its days
    is_final: bool = False  # asks for the slug, because nobody can undo it


_CLOSE: Final = _(
    "Stops completions and changes, and creates a final export for the owners. After the grace "
    "period, all data is deleted, and you get a deletion certificate. Until then, you can cancel "
    "this."
)
_CHANGES: Final = (
    StatusChange(
        TenantStatus.ACTIVE,
        TenantStatus.SUSPENDED,
        _("Suspend"),
        _("Gateways reject its API keys within a second. Members can still sign in."),
        "danger",
    ),
    StatusChange(
        TenantStatus.ACTIVE,
        TenantStatus.CLOSING,
        _("Close the tenant"),
        _CLOSE,
        "danger",
        has_grace_period=True,
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
        _("Close the tenant"),
        _CLOSE,
        "danger",
        has_grace_period=True,
    ),
    StatusChange(
        TenantStatus.CLOSING,
        TenantStatus.ACTIVE,
        _("Cancel the closing and resume"),
        _("No data is deleted. Gateways accept its API keys again within a second."),
        "primary",
    ),
    StatusChange(
        TenantStatus.CLOSING,
        TenantStatus.SUSPENDED,
        _("Cancel the closing and suspend"),
        _("No data is deleted. Gateways still reject its API keys."),
        "primary",
    ),
    StatusChange(
        TenantStatus.CLOSING,
        TenantStatus.CLOSED,
        _("Close now"),
        _(
            "Ends the grace period: nobody can sign in to the tenant any more, and its data is "
            "deleted. You cannot undo this."
        ),
        "danger",
        is_final=True,
    ),
)


def changes_from(present: TenantStatus) -> list[StatusChange]:
    return [change for change in _CHANGES if change.present is present]
