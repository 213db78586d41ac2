"""The title, meaning and formatted value of each field of a policy."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from django.utils.formats import number_format
from django.utils.functional import Promise
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from caret.contracts.policy import (
    ANY_LANGUAGE,
    ContentCapturePolicy,
    Isolation,
    PolicyLimits,
    RateLimit,
    TenantPolicy,
    Tier,
)
from console.texts.labels import TIER_LABELS
from tenants.policy.data_classes import DATA_CLASSES, DataClass


def format_number(number: int) -> str:
    return str(number_format(number, use_l10n=True, force_grouping=True))


MODES: Final[dict[str, Promise]] = {
    "inline": _("Inline suggestions"),
    "fim": _("Fill in the middle"),
    "block": _("Blocks"),
    "docstring": _("Docstrings"),
    "chat": _("Chat"),
    "edit": _("Next edits"),
}
# What an override can restrict. In a policy, other fields control the last two.
FEATURES: Final[dict[str, Promise]] = MODES | {
    "retrieval": _("Retrieval"),
    "experiments": _("Experiments"),
}
ISOLATIONS: Final[dict[str, Promise]] = {
    Isolation.SHARED: _("Shared among the members of this tenant only"),
    Isolation.STRICT: _("Separate for each user and each service key"),
}


@dataclass(frozen=True, slots=True)
class PolicyField:
    name: str  # field of TenantPolicy
    title: str | Promise
    meaning: str | Promise
    lines: Callable[[TenantPolicy], list[str]]  # formats the value, one line for each part


@dataclass(frozen=True, slots=True)
class PolicySection:
    title: str | Promise
    fields: tuple[PolicyField, ...]


def yes_or_no(value: bool) -> list[str]:
    return [gettext("Yes") if value else gettext("No")]


def names_or_all(names: frozenset[str] | None) -> list[str]:
    """Return one name a line. `names` None: all."""
    if names is None:
        return [gettext("All")]
    return sorted(names) or [gettext("None")]


def days_or_none(days: int | None, text_if_none: str) -> list[str]:
    """Return one line: the number of days, or `text_if_none` if there is none."""
    if days is None:
        return [text_if_none]
    return [ngettext("%(days)s day", "%(days)s days", days) % {"days": format_number(days)}]


def feature_lines(features: Iterable[str]) -> list[str]:
    """Return the titles of the features, one a line, in the order of FEATURES."""
    enabled = set(features)
    return [str(title) for name, title in FEATURES.items() if name in enabled] or [gettext("None")]


def exclusion_lines(exclusion: dict[str, tuple[str, ...]]) -> list[str]:
    """Return one glob a line. The globs for all repositories ("*") come first."""
    names = sorted(exclusion, key=lambda name: (name != "*", name))
    return [f'"{name}": "{glob}"' for name in names for glob in exclusion[name]]


def rate_line(holder: str, rate: RateLimit) -> str:
    """Return the rate limit as text. `holder` says whose limit it is, such as "Per user"."""
    text = gettext("%(holder)s: %(rate)s requests per minute, burst of %(burst)s")
    return text % {
        "holder": holder,
        "rate": format_number(rate.per_minute),
        "burst": format_number(rate.burst),
    }


def _limit_lines(limits: PolicyLimits) -> list[str]:
    rates = (
        (gettext("Whole tenant"), limits.tenant),
        (gettext("Per user"), limits.user),
        (gettext("Per key"), limits.key),
    )
    lines = [rate_line(holder, rate) for holder, rate in rates if rate is not None]
    tokens = gettext("%(tier)s: %(tokens)s tokens per day")
    lines += [
        tokens % {"tier": TIER_LABELS[tier], "tokens": format_number(limit)}
        for tier, limit in sorted(limits.tokens_per_day.items())
    ]
    return lines or [gettext("No limit")]


def _default_model_lines(defaults: dict[Tier, dict[str, str]]) -> list[str]:
    lines = []
    for tier, models_by_language in sorted(defaults.items()):
        for language, model in sorted(models_by_language.items()):
            language_name = gettext("all other languages") if language == ANY_LANGUAGE else language
            lines.append(f"{TIER_LABELS[tier]}, {language_name}: {model}")
    return lines or [gettext("Chosen by the operator")]


def _content_capture_lines(content_capture: ContentCapturePolicy | None) -> list[str]:
    if content_capture is None:
        return [gettext("Off: nothing is stored")]
    text = ngettext(
        "Users can consent; content is stored for %(days)s day",
        "Users can consent; content is stored for %(days)s days",
        content_capture.retention_days,
    )
    training = gettext("Users can also consent to model training")
    wording = gettext("Consent text %(version)s") % {"version": content_capture.consent_text}
    lines = [text % {"days": content_capture.retention_days}, wording]
    return [*lines, training] if content_capture.training else lines


def _retention_lines(days_by_class: dict[str, int]) -> list[str]:
    lines = [
        f"{gettext(DATA_CLASSES[DataClass(name)].title)}: {days_or_none(days, text_if_none='')[0]}"
        for name, days in sorted(days_by_class.items())
    ]
    return lines or [gettext("As set on the Retention page")]


SECTIONS: Final = (
    PolicySection(
        _("Allowed completions"),
        (
            PolicyField(
                "features",
                _("Completion modes"),
                _("Requests for other modes are rejected."),
                lambda policy: feature_lines(mode.value for mode in policy.features),
            ),
            PolicyField(
                "models",
                _("Models"),
                _("Models that can serve completions."),
                lambda policy: names_or_all(policy.models),
            ),
            PolicyField(
                "default_models",
                _("Default models"),
                _("Models that serve requests that do not name a model."),
                lambda policy: _default_model_lines(policy.default_models),
            ),
            PolicyField(
                "regions",
                _("Regions"),
                _("Regions whose gateways can serve completions."),
                lambda policy: names_or_all(policy.regions),
            ),
            PolicyField(
                "has_experiments",
                _("Experiments"),
                _(
                    "The operator can test variants of prompt layouts and filters on "
                    "your requests. This never changes how your data is handled."
                ),
                lambda policy: yes_or_no(policy.has_experiments),
            ),
        ),
    ),
    PolicySection(
        _("Content exclusion"),
        (
            PolicyField(
                "content_exclusion",
                _("Content exclusion"),
                _(
                    "The content of files at these paths is never sent to a model. This "
                    "requires that clients send the path of each file."
                ),
                lambda policy: exclusion_lines(policy.content_exclusion) or [gettext("None")],
            ),
            PolicyField(
                "requires_path",
                _("File path required"),
                _("Requests without a file path are rejected."),
                lambda policy: yes_or_no(policy.requires_path),
            ),
            PolicyField(
                "retrieval",
                _("Retrieval"),
                _(
                    "Name patterns of the repositories that may be indexed. The index is stored "
                    "encrypted."
                ),
                lambda policy: list(policy.retrieval) or [gettext("None")],
            ),
        ),
    ),
    PolicySection(
        _("Filters"),
        (
            PolicyField(
                "has_secret_filter",
                _("Secret filter"),
                _("Completions that look like credentials are filtered."),
                lambda policy: yes_or_no(policy.has_secret_filter),
            ),
            PolicyField(
                "has_public_code_filter",
                _("Public code filter"),
                _("Completions found in the operator's public code index are filtered."),
                lambda policy: yes_or_no(policy.has_public_code_filter),
            ),
        ),
    ),
    PolicySection(
        _("Limits"),
        (
            PolicyField(
                "max_concurrent_completions",
                _("Concurrent completions"),
                _("Concurrent completions of the whole tenant, per gateway."),
                lambda policy: [format_number(policy.max_concurrent_completions)],
            ),
            PolicyField(
                "limits",
                _("Rate limits"),
                _("Requests over a limit are rejected, and the response says when to retry."),
                lambda policy: _limit_lines(policy.limits),
            ),
        ),
    ),
    PolicySection(
        _("Content capture and retention"),
        (
            PolicyField(
                "content_capture",
                _("Content capture"),
                _("Content is stored only if the tenant allows it and the user consents."),
                lambda policy: _content_capture_lines(policy.content_capture),
            ),
            PolicyField(
                "retention_days",
                _("Shorter retention"),
                _("Data classes with a shorter retention period than on the Retention page."),
                lambda policy: _retention_lines(policy.retention_days),
            ),
            PolicyField(
                "isolation",
                _("Prefix cache"),
                _("Who can use cached prompts."),
                lambda policy: [str(ISOLATIONS[policy.isolation])],
            ),
        ),
    ),
    PolicySection(
        _("Keys and sign-in"),
        (
            PolicyField(
                "allows_own_keys",
                _("Own keys"),
                _("Whether members can create keys for themselves."),
                lambda policy: yes_or_no(policy.allows_own_keys),
            ),
            PolicyField(
                "max_key_lifetime_days",
                _("Key lifetime"),
                _("How long new keys can be valid."),
                lambda policy: days_or_none(policy.max_key_lifetime_days, gettext("No limit")),
            ),
            PolicyField(
                "revoke_idle_keys_after_days",
                _("Idle keys"),
                _("Keys are revoked after this time without use."),
                lambda policy: days_or_none(
                    policy.revoke_idle_keys_after_days, gettext("Never revoked")
                ),
            ),
            PolicyField(
                "is_mfa_required",
                _("Two-factor authentication"),
                _("Required for all users who sign in with a password."),
                lambda policy: yes_or_no(policy.is_mfa_required),
            ),
        ),
    ),
)
FIELDS: Final = {field.name: field for section in SECTIONS for field in section.fields}
