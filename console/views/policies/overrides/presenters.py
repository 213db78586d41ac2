"""Presentation of policy overrides. Only fields that an override sets are shown."""

from django.utils.translation import gettext

from caret.contracts.policy import PolicyOverride
from console.views.policies.diff import FieldChange, change_of
from console.views.policies.presenters import (
    days_or_none,
    exclusion_lines,
    feature_lines,
    names_or_all,
    rate_line,
)


def override_lines(override: PolicyOverride) -> dict[str, list[str]]:
    """Return the lines of the fields that the override sets, by title."""
    features = None if override.features is None else feature_lines(override.features)
    lines = {
        gettext("Allowed completion modes"): features,
        gettext("Models"): None if override.models is None else names_or_all(override.models),
        gettext("Regions"): None if override.regions is None else names_or_all(override.regions),
        gettext("Content exclusion"): exclusion_lines(override.content_exclusion),
        gettext("Filtered"): _filter_lines(override),
        gettext("Rate limits"): _rate_lines(override),
        gettext("Key lifetime"): _lifetime_lines(override.max_key_lifetime_days),
        gettext("Two-factor authentication"): [gettext("Required")]
        if override.is_mfa_required
        else None,
    }
    return {title: field_lines for title, field_lines in lines.items() if field_lines}


def override_changes(before: PolicyOverride, after: PolicyOverride) -> list[FieldChange]:
    """Return the changes of the fields that at least one of the two overrides sets."""
    old, new = override_lines(before), override_lines(after)
    return [
        change_of(title, old.get(title, []), new.get(title, []))
        for title in dict.fromkeys([*old, *new])
        if old.get(title) != new.get(title)
    ]


def _filter_lines(override: PolicyOverride) -> list[str]:
    secrets = [gettext("Secret filter")] if override.has_secret_filter else []
    public = [gettext("Public code filter")] if override.has_public_code_filter else []
    return secrets + public


def _rate_lines(override: PolicyOverride) -> list[str]:
    rates = ((gettext("Per user"), override.user_limit), (gettext("Per key"), override.key_limit))
    return [rate_line(holder, rate) for holder, rate in rates if rate is not None]


def _lifetime_lines(days: int | None) -> list[str] | None:
    return None if days is None else days_or_none(days, text_if_none="")
