"""Presentation of policy overrides: only the fields that they set."""

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


def layer_lines(layer: PolicyOverride) -> dict[str, list[str]]:
    """Return the lines of each field that is set, by title."""
    features = None if layer.features is None else feature_lines(layer.features)
    lines = {
        gettext("Allowed completion modes"): features,
        gettext("Models"): None if layer.models is None else names_or_all(layer.models),
        gettext("Regions"): None if layer.regions is None else names_or_all(layer.regions),
        gettext("Content exclusion"): exclusion_lines(layer.content_exclusion),
        gettext("Filtered"): _withheld_lines(layer),
        gettext("Rate limits"): _rate_lines(layer),
        gettext("Key lifetime"): _lifetime_lines(layer.max_key_lifetime_days),
        gettext("Two-factor authentication"): [gettext("Required")]
        if layer.is_mfa_required
        else None,
    }
    return {title: said for title, said in lines.items() if said}


def layer_changes(before: PolicyOverride, after: PolicyOverride) -> list[FieldChange]:
    old, new = layer_lines(before), layer_lines(after)
    titles = dict.fromkeys([*old, *new])
    pairs = [(title, old.get(title, []), new.get(title, [])) for title in titles]
    return [change_of(*pair) for pair in pairs if pair[1] != pair[2]]


def _withheld_lines(layer: PolicyOverride) -> list[str]:
    secrets = [gettext("Secret filter")] if layer.has_secret_filter else []
    public = [gettext("Public code filter")] if layer.has_public_code_filter else []
    return secrets + public


def _rate_lines(layer: PolicyOverride) -> list[str]:
    rates = ((gettext("Per user"), layer.user_limit), (gettext("Per key"), layer.key_limit))
    return [rate_line(whose, rate) for whose, rate in rates if rate is not None]


def _lifetime_lines(days: int | None) -> list[str] | None:
    return None if days is None else days_or_none(days, "")
