"""Labels of enum values (roles, modes, tiers and others), in the language of the page.

In German:

    label_of(Role.OWNER)  ->  Inhaber

Responses to programs, files and URLs contain the values themselves.
"""

from collections.abc import Mapping
from typing import Any, Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from caret.contracts.api_key import KeyKind
from caret.contracts.policy import Mode, Tier
from caret.contracts.snapshot import TenantStatus
from caret.contracts.usage import FinishReason
from tenants.base.operator_roles import OperatorRole
from tenants.base.permissions import Role
from tenants.compliance.exports.jobs.state_machine import JobState

ROLE_LABELS: Final[Mapping[Role, Promise]] = {
    Role.OWNER: _("Owner"),
    Role.ADMINISTRATOR: _("Administrator"),
    Role.BILLING: _("Billing"),
    Role.AUDITOR: _("Auditor"),
    Role.DEVELOPER: _("Developer"),
}
OPERATOR_ROLE_LABELS: Final[Mapping[OperatorRole, Promise]] = {
    OperatorRole.SUPPORT: _("Support"),
    OperatorRole.ADMIN: _("Administrator"),
}
MODE_LABELS: Final[Mapping[Mode, Promise]] = {
    Mode.INLINE: _("Inline"),
    Mode.FIM: _("Fill in the middle"),
    Mode.BLOCK: _("Block"),
    Mode.DOCSTRING: _("Docstring"),
    Mode.CHAT: _("Chat"),
    Mode.EDIT: _("Next edit"),
}
TIER_LABELS: Final[Mapping[Tier, Promise]] = {Tier.FAST: _("Fast"), Tier.QUALITY: _("Quality")}
KEY_KIND_LABELS: Final[Mapping[KeyKind, Promise]] = {
    KeyKind.DEVELOPER: _("Developer"),
    KeyKind.TEST: _("Test"),
    KeyKind.SERVICE: _("Service"),
}
# From here on, labels are in lower case, because they also appear inside sentences.
FINISH_LABELS: Final[Mapping[FinishReason, Promise]] = {
    FinishReason.STOP: _("completed"),
    FinishReason.LENGTH: _("completed (maximum length)"),
    FinishReason.CANCELLED: _("cancelled"),
    FinishReason.SUPERSEDED: _("superseded"),
    FinishReason.SHED: _("shed"),
    FinishReason.FILTERED: _("filtered"),
    FinishReason.BUDGET_EXCEEDED: _("budget exceeded"),
    FinishReason.ERROR: _("error"),
}
TENANT_STATUS_LABELS: Final[Mapping[TenantStatus, Promise]] = {
    TenantStatus.ACTIVE: _("active"),
    TenantStatus.SUSPENDED: _("suspended"),
    TenantStatus.CLOSING: _("closing"),
    TenantStatus.CLOSED: _("closed"),
}
EXPORT_STATE_LABELS: Final[Mapping[JobState, Promise]] = {
    JobState.QUEUED: _("waiting"),
    JobState.RUNNING: _("in progress"),
    JobState.FINISHED: _("finished"),
    JobState.FAILED: _("failed"),
    JobState.CANCELLED: _("cancelled"),
    JobState.EXPIRED: _("expired"),
}
_LABELS: Final[Mapping[type, Mapping[Any, Promise]]] = {
    Role: ROLE_LABELS,
    OperatorRole: OPERATOR_ROLE_LABELS,
    Mode: MODE_LABELS,
    Tier: TIER_LABELS,
    KeyKind: KEY_KIND_LABELS,
    FinishReason: FINISH_LABELS,
    TenantStatus: TENANT_STATUS_LABELS,
    JobState: EXPORT_STATE_LABELS,
}


def label_of(value: object) -> object:
    """Return the label of an enum value that has one; any other value unchanged."""
    labels = _LABELS.get(type(value))
    return value if labels is None else labels[value]
