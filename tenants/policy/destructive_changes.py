"""Policy changes that destroy data or keys, or weaken sign-in."""

from caret.contracts.policy import TenantPolicy
from tenants.policy.data_classes import DATA_CLASSES, DataClass


def is_destructive(*, held: TenantPolicy, wanted: TenantPolicy) -> bool:
    """Return whether the change erases data, revokes keys sooner or drops the second factor."""
    return (
        _shrinks_content(held, wanted)
        or not set(held.retrieval) <= set(wanted.retrieval)
        or any(_days_of(wanted, each) < _days_of(held, each) for each in DataClass)
        or _revokes_sooner(held, wanted)
        or (held.is_mfa_required and not wanted.is_mfa_required)
    )


def _shrinks_content(held: TenantPolicy, wanted: TenantPolicy) -> bool:
    if held.telemetry is None:
        return False
    if wanted.telemetry is None or wanted.telemetry.retention_days < held.telemetry.retention_days:
        return True
    return held.telemetry.training and not wanted.telemetry.training


def _days_of(policy: TenantPolicy, data_class: DataClass) -> int:
    return policy.retention_days.get(data_class.value, DATA_CLASSES[data_class].default_days)


def _revokes_sooner(held: TenantPolicy, wanted: TenantPolicy) -> bool:
    before, after = held.revoke_idle_keys_after_days, wanted.revoke_idle_keys_after_days
    return after is not None and (before is None or after < before)
