"""The form of a policy, and the conversion of a policy to form fields and back.

The form leaves content exclusion unchanged, because another page edits it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from django import forms
from django.forms import BoundField
from django.http import QueryDict
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from caret.contracts.policy import ContentCapturePolicy, TenantPolicy, Tier
from console.views.policies.choices import WHY_NOT_ENFORCED, PolicyChoices
from console.views.policies.form_fields import (
    all_or_some_field,
    burst_field,
    checkbox_field,
    initial_names,
    initial_rate,
    key_days_field,
    lines_field,
    lines_of,
    names_field,
    names_of,
    number_field,
    per_minute_field,
    rate_of,
)
from console.views.policies.model_fields import (
    add_default_model_fields,
    build_default_models,
    group_default_models,
    initial_default_models,
    offer_policy_choices,
)
from console.views.policies.presenters import ISOLATIONS, MODES
from tenants.base.errors import InvalidValue
from tenants.policy.availability.enforcement import Capability
from tenants.policy.data_classes import DATA_CLASSES
from tenants.policy.document import (
    MAX_CONCURRENT_COMPLETIONS,
    MAX_CONTENT_RETENTION_DAYS,
    MAX_TOKENS_PER_DAY,
    parse_policy,
    serialize_policy,
)
from tenants.privacy.consent.consent_texts import TENANT_CONSENT_VERSION

# Fields of PolicyLimits that contain a rate limit.
_RATE_LIMIT_HOLDERS: Final = ("tenant", "user", "key")
# The data classes whose retention a policy can shorten, by name.
_OVERRIDABLE_RETENTION: Final = {
    data_class.value: terms for data_class, terms in DATA_CLASSES.items() if terms.is_overridable
}
_DEFAULT_CONTENT_DAYS: Final = 30  # proposed retention of captured content


class PolicyForm(forms.Form):
    features = forms.MultipleChoiceField(
        label=_("Completion modes"),
        help_text=_("Requests for other modes are rejected."),
        choices=list(MODES.items()),
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    models_restriction = all_or_some_field(_("Models"), _("All models"), _("Only these"))
    models = names_field(_("Allowed models"), _("Requests for other models are rejected."))
    regions_restriction = all_or_some_field(_("Regions"), _("All regions"), _("Only these"))
    regions = names_field(_("Allowed regions"), _("Gateways in other regions reject requests."))
    has_experiments = checkbox_field(
        _("Take part in experiments"),
        _(
            "The operator can test variants of prompt layouts and filters on your requests. "
            "This never changes how your data is handled."
        ),
    )
    retrieval = lines_field(
        _("Repositories to index"),
        _(
            "Name patterns, one per line. Files of these repositories are stored "
            "encrypted, and completions can use them. If you remove a pattern, its files "
            "are erased."
        ),
    )
    requires_path = checkbox_field(
        _("Require a file path with each request"),
        _(
            "Content exclusion cannot work without a file path. Editors that cannot send "
            "the X-Caret-Path header get no completions."
        ),
    )
    has_secret_filter = checkbox_field(
        _("Secret filter"),
        _("Completions that look like credentials are filtered and never reach an editor."),
    )
    has_public_code_filter = checkbox_field(
        _("Public code filter"),
        _(
            "Filters completions that match about 150 characters of the operator's public "
            "code index."
        ),
    )
    max_concurrent_completions = forms.IntegerField(
        label=_("Concurrent completions"),
        help_text=_("The most completions of the whole tenant at once, on each gateway."),
        min_value=1,
        max_value=MAX_CONCURRENT_COMPLETIONS,
    )
    limits_tenant_per_minute = per_minute_field(_("Whole tenant: requests per minute"))
    limits_tenant_burst = burst_field(_("Whole tenant: burst size in requests"))
    limits_user_per_minute = per_minute_field(_("Per user: requests per minute"))
    limits_user_burst = burst_field(_("Per user: burst size in requests"))
    limits_key_per_minute = per_minute_field(_("Per key: requests per minute"))
    limits_key_burst = burst_field(_("Per key: burst size in requests"))
    limits_tokens_per_day_fast = number_field(_("Fast tier: tokens per day"), MAX_TOKENS_PER_DAY)
    limits_tokens_per_day_quality = number_field(
        _("Quality tier: tokens per day"), MAX_TOKENS_PER_DAY
    )
    content_capture = checkbox_field(
        _("Allow content capture"),
        _("If off, nothing is stored, even if a user consents. If on, each user decides."),
    )
    content_capture_consent_text = forms.CharField(
        widget=forms.HiddenInput, required=False, max_length=40
    )
    content_capture_retention_days = number_field(
        _("Retention period in days"),
        MAX_CONTENT_RETENTION_DAYS,
        _("Content is erased after this period."),
    )
    content_capture_training = checkbox_field(
        _("Allow users to consent to model training"), _("Users are asked separately.")
    )
    isolation = forms.ChoiceField(
        label=_("Prefix cache"),
        help_text=_("Who can use cached prompts."),
        choices=list(ISOLATIONS.items()),
        widget=forms.RadioSelect,
    )
    max_key_lifetime_days = key_days_field(
        _("Maximum lifetime of new keys in days"), _("Leave empty for no limit.")
    )
    revoke_idle_keys_after_days = key_days_field(
        _("Days until idle keys are revoked"), _("Leave empty to never revoke them.")
    )
    allows_own_keys = checkbox_field(
        _("Members can create their own keys"),
        _("For completions only, in the console or by signing in from an editor."),
    )
    is_mfa_required = checkbox_field(
        _("Require two-factor authentication"),
        _("For all users who sign in with a password, from their next page view."),
    )

    def __init__(
        self, data: QueryDict | None, *, policy: TenantPolicy, choices: PolicyChoices
    ) -> None:
        """Build the fields. Their initial values are those of `policy`."""
        super().__init__(data, initial=initial_of(policy))
        offer_policy_choices(self, policy, choices)
        add_default_model_fields(self, policy, choices)
        for field, capability in (
            ("has_public_code_filter", Capability.PUBLIC_CODE_FILTER),
            ("retrieval", Capability.RETRIEVAL),
        ):
            if choices.is_missing(capability):
                # A rule that is on can still be switched off.
                self.fields[field].disabled = not getattr(policy, field)
                self.fields[field].help_text = str(WHY_NOT_ENFORCED[field])
        for name, terms in _OVERRIDABLE_RETENTION.items():
            self.fields[f"retention_days_{name}"] = number_field(
                _(terms.title), terms.max_days, min_value=terms.min_days
            )


@dataclass(frozen=True, slots=True)
class FieldGroup:
    title: str
    lead: str  # text below the title; "": none
    rows: list[list[BoundField]]  # the page shows the fields of one row side by side


def iterate_field_groups(form: PolicyForm) -> Iterator[FieldGroup]:
    """Yield the groups in the order of the page, without empty ones.

    The second group, the default models, is not in `_GROUPS`, because its fields differ by tenant.
    """
    for title, lead, rows in (_GROUPS[0], _build_default_models_group(form), *_GROUPS[1:]):
        if rows:
            yield FieldGroup(str(title), str(lead), [[form[name] for name in row] for row in rows])


def _build_default_models_group(form: PolicyForm) -> "_Group":
    lead = _(
        "Models for requests that do not name a model. To add a language, fill in an empty "
        "row. To remove a language, clear its row."
    )
    rows = tuple(tuple(row) for row in group_default_models(form))
    return _("Default models"), lead, rows


def initial_of(policy: TenantPolicy) -> dict[str, Any]:
    content_capture = policy.content_capture or ContentCapturePolicy(
        TENANT_CONSENT_VERSION, _DEFAULT_CONTENT_DAYS
    )
    limits = policy.limits
    values: dict[str, Any] = {
        **{name: getattr(policy, name) for name in _UNCONVERTED_FIELDS},
        "features": [mode.value for mode in policy.features],
        "retrieval": "\n".join(policy.retrieval),
        "isolation": policy.isolation.value,
        "content_capture": policy.content_capture is not None,
        # The page shows the current text. The policy may still name an earlier one.
        "content_capture_consent_text": TENANT_CONSENT_VERSION,
        "content_capture_retention_days": content_capture.retention_days,
        "content_capture_training": content_capture.training,
        **initial_default_models(policy),
        **initial_names("models", policy.models),
        **initial_names("regions", policy.regions),
    }
    for tier in Tier:
        values[f"limits_tokens_per_day_{tier.value}"] = limits.tokens_per_day.get(tier)
    for holder in _RATE_LIMIT_HOLDERS:
        values |= initial_rate(f"limits_{holder}", getattr(limits, holder))
    return values | {f"retention_days_{name}": days for name, days in policy.retention_days.items()}


def policy_of(cleaned: dict[str, Any], *, base: TenantPolicy) -> TenantPolicy:
    """Return `base` changed by the form's fields. Raises InvalidValue."""
    document = serialize_policy(base) | {name: cleaned[name] for name in _UNCONVERTED_FIELDS}
    document |= {
        "features": cleaned["features"],
        "retrieval": lines_of(cleaned["retrieval"]),
        "isolation": cleaned["isolation"],
        "models": names_of(cleaned, "models"),
        "default_models": build_default_models(cleaned, base=base),
        "regions": names_of(cleaned, "regions"),
        "limits": _read_limits(cleaned),
        "content_capture": _read_content_capture(cleaned),
        "retention_days": {
            name: days
            for name in _OVERRIDABLE_RETENTION
            if (days := cleaned[f"retention_days_{name}"]) is not None
        },
    }
    return parse_policy(document)


def _read_limits(cleaned: dict[str, Any]) -> dict[str, Any]:
    tokens = {tier.value: cleaned[f"limits_tokens_per_day_{tier.value}"] for tier in Tier}
    return {
        **{holder: rate_of(cleaned, f"limits_{holder}") for holder in _RATE_LIMIT_HOLDERS},
        "tokens_per_day": {tier: limit for tier, limit in tokens.items() if limit is not None},
    }


def _read_content_capture(cleaned: dict[str, Any]) -> dict[str, Any] | None:
    """Return the content capture as JSON; None if it is not allowed. Raises InvalidValue."""
    if not cleaned["content_capture"]:
        return None
    if cleaned["content_capture_retention_days"] is None:
        raise InvalidValue(
            "content_capture.retention_days",
            "Enter a number from 1 to {most}.",
            most=MAX_CONTENT_RETENTION_DAYS,
        )
    return {
        "consent_text": cleaned["content_capture_consent_text"],
        "retention_days": cleaned["content_capture_retention_days"],
        "training": cleaned["content_capture_training"],
    }


# Fields whose values are the same in the form, the policy and its JSON document.
_UNCONVERTED_FIELDS: Final = (
    "has_experiments",
    "requires_path",
    "has_secret_filter",
    "has_public_code_filter",
    "max_concurrent_completions",
    "allows_own_keys",
    "max_key_lifetime_days",
    "revoke_idle_keys_after_days",
    "is_mfa_required",
)
# Title, lead and rows of field names.
_Group = tuple[str | Promise, str | Promise, tuple[tuple[str, ...], ...]]
_GROUPS: Final[tuple[_Group, ...]] = (
    (
        _("Allowed completions"),
        "",
        (
            ("features",),
            ("models_restriction",),
            ("models",),
            ("regions_restriction",),
            ("regions",),
            ("has_experiments",),
        ),
    ),
    (_("Content exclusion"), "", (("requires_path",),)),
    (_("Indexing"), "", (("retrieval",),)),
    (_("Filters"), "", (("has_secret_filter",), ("has_public_code_filter",))),
    (
        _("Limits"),
        _(
            "Requests over a limit are rejected, and the response says when to retry. "
            "Except for concurrent completions, leave a field empty for no limit."
        ),
        (
            ("max_concurrent_completions",),
            *(
                (f"limits_{holder}_per_minute", f"limits_{holder}_burst")
                for holder in _RATE_LIMIT_HOLDERS
            ),
            ("limits_tokens_per_day_fast", "limits_tokens_per_day_quality"),
        ),
    ),
    (
        _("Content capture"),
        "",
        (("content_capture",), ("content_capture_retention_days",), ("content_capture_training",)),
    ),
    (
        _("Retention periods in days"),
        _(
            "Leave empty to use the setting on the Retention page. A policy can only "
            "shorten the period."
        ),
        (tuple(f"retention_days_{name}" for name in _OVERRIDABLE_RETENTION),),
    ),
    (_("Isolation"), "", (("isolation",),)),
    (
        _("Keys and sign-in"),
        "",
        (
            ("allows_own_keys",),
            ("max_key_lifetime_days", "revoke_idle_keys_after_days"),
            ("is_mfa_required",),
        ),
    ),
)
