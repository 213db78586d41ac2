"""The title, meaning and formatted value of each policy field."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from caret.contracts.policy import Isolation, PolicyLimits, RateLimit, Telemetry, TenantPolicy
from console.views.policies.numbers import shown_number
from tenants.policy.data_classes import DATA_CLASSES, DataClass

MODES: Final[dict[str, Promise]] = {
    "inline": _("Inline suggestions"),
    "fim": _("Fill-in-the-middle"),
    "block": _("Blocks"),
    "docstring": _("Docstrings"),
    "chat": _("Chat"),
}
FEATURES: Final[dict[str, Promise]] = MODES | {
    "retrieval": _("Retrieval"),
    "experiments": _("Experiments"),
}
ISOLATIONS: Final[dict[str, Promise]] = {
    Isolation.SHARED: _("Shared by the members of this tenant, and by nobody else"),
    Isolation.STRICT: _("One for each user"),
}
_TIERS: Final[dict[str, Promise]] = {"fast": _("Fast"), "quality": _("Quality")}


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
    if names is None:
        return [gettext("All")]
    return sorted(names) or [gettext("None")]


def days_or_none(days: int | None, none: str) -> list[str]:
    if days is None:
        return [none]
    return [ngettext("%(days)s day", "%(days)s days", days) % {"days": shown_number(days)}]


def feature_lines(features: Iterable[str]) -> list[str]:
    on = set(features)
    return [str(title) for name, title in FEATURES.items() if name in on] or [gettext("None")]


def exclusion_lines(exclusion: dict[str, tuple[str, ...]]) -> list[str]:
    """Return the patterns as lines. Those for every repository come first."""
    names = sorted(exclusion, key=lambda each: (each != "*", each))
    return [f'"{name}": "{glob}"' for name in names for glob in exclusion[name]]


def rate_line(whose: str, rate: RateLimit) -> str:
    said = gettext("%(whose)s: %(rate)s requests a minute, and %(burst)s at once")
    return said % {
        "whose": whose,
        "rate": shown_number(rate.per_minute),
        "burst": shown_number(rate.burst),
    }


def _limit_lines(limits: PolicyLimits) -> list[str]:
    rates = (
        (gettext("All together"), limits.tenant),
        (gettext("Each user"), limits.user),
        (gettext("Each key"), limits.key),
    )
    lines = [rate_line(whose, rate) for whose, rate in rates if rate is not None]
    tokens = gettext("%(tier)s: %(tokens)s tokens a day")
    lines += [
        tokens % {"tier": _TIERS[tier], "tokens": shown_number(limit)}
        for tier, limit in sorted(limits.tokens_per_day.items())
    ]
    return lines or [gettext("No limit")]


def _telemetry_lines(telemetry: Telemetry | None) -> list[str]:
    if telemetry is None:
        return [gettext("Nothing is kept, whoever agrees")]
    kept = ngettext(
        "Users may agree: kept for %(days)s day",
        "Users may agree: kept for %(days)s days",
        telemetry.retention_days,
    )
    training = gettext("Users may also agree that it trains models")
    wording = gettext("By the wording %(version)s") % {"version": telemetry.wording}
    lines = [kept % {"days": telemetry.retention_days}, wording]
    return [*lines, training] if telemetry.training else lines


def _retention_lines(days_of: dict[str, int]) -> list[str]:
    lines = [
        f"{gettext(DATA_CLASSES[DataClass(name)].title)}: {days_or_none(days, '')[0]}"
        for name, days in sorted(days_of.items())
    ]
    return lines or [gettext("As the retention page says")]


SECTIONS: Final = (
    PolicySection(
        _("What may be asked for"),
        (
            PolicyField(
                "features",
                _("Features"),
                _("A request for anything else is refused."),
                lambda policy: feature_lines(mode.value for mode in policy.features),
            ),
            PolicyField(
                "models",
                _("Models"),
                _("The models that may complete, by name."),
                lambda policy: names_or_all(policy.models),
            ),
            PolicyField(
                "regions",
                _("Regions"),
                _("The regions whose gateways may complete."),
                lambda policy: names_or_all(policy.regions),
            ),
            PolicyField(
                "has_experiments",
                _("Experiments"),
                _("Prompt layouts and filters may be tried on requests; never data."),
                lambda policy: yes_or_no(policy.has_experiments),
            ),
        ),
    ),
    PolicySection(
        _("What may be sent"),
        (
            PolicyField(
                "content_exclusion",
                _("Excluded content"),
                _("Paths that are never sent, where a request names its file."),
                lambda policy: exclusion_lines(policy.content_exclusion) or [gettext("Nothing")],
            ),
            PolicyField(
                "requires_path",
                _("File must be named"),
                _("Requests that do not name their file are refused."),
                lambda policy: yes_or_no(policy.requires_path),
            ),
            PolicyField(
                "retrieval",
                _("Retrieval"),
                _("Repositories that may be indexed and kept, encrypted; patterns of their names."),
                lambda policy: list(policy.retrieval) or [gettext("None")],
            ),
        ),
    ),
    PolicySection(
        _("What is withheld"),
        (
            PolicyField(
                "has_secret_filter",
                _("Secrets"),
                _("Completions that look like credentials are withheld."),
                lambda policy: yes_or_no(policy.has_secret_filter),
            ),
            PolicyField(
                "has_public_code_filter",
                _("Public code"),
                _("Completions found in the operator's index of public code are withheld."),
                lambda policy: yes_or_no(policy.has_public_code_filter),
            ),
        ),
    ),
    PolicySection(
        _("Limits"),
        (
            PolicyField(
                "max_concurrent_completions",
                _("At once"),
                _("Completions of the whole tenant at the same time, on one gateway."),
                lambda policy: [shown_number(policy.max_concurrent_completions)],
            ),
            PolicyField(
                "limits",
                _("Rates"),
                _("What is beyond is refused, and editors are told when to ask again."),
                lambda policy: _limit_lines(policy.limits),
            ),
        ),
    ),
    PolicySection(
        _("What is kept"),
        (
            PolicyField(
                "telemetry",
                _("Content of completions"),
                _("Nothing is kept unless the tenant allows it and the user agrees."),
                lambda policy: _telemetry_lines(policy.telemetry),
            ),
            PolicyField(
                "retention_days",
                _("Shorter retention"),
                _("Data classes that are kept for fewer days than retention says."),
                lambda policy: _retention_lines(policy.retention_days),
            ),
            PolicyField(
                "isolation",
                _("Prefix cache"),
                _("Who can hit what the engine has computed before."),
                lambda policy: [str(ISOLATIONS[policy.isolation])],
            ),
        ),
    ),
    PolicySection(
        _("Keys and sign-in"),
        (
            PolicyField(
                "max_key_lifetime_days",
                _("Lifetime of keys"),
                _("For how long a new key's text may be good."),
                lambda policy: days_or_none(
                    policy.max_key_lifetime_days, gettext("As long as its maker says")
                ),
            ),
            PolicyField(
                "revoke_idle_keys_after_days",
                _("Idle keys"),
                _("Keys that nobody has used for so long are revoked."),
                lambda policy: days_or_none(
                    policy.revoke_idle_keys_after_days, gettext("Never revoked")
                ),
            ),
            PolicyField(
                "is_mfa_required",
                _("Second factor"),
                _("Everybody who signs in by a password gives a second factor."),
                lambda policy: yes_or_no(policy.is_mfa_required),
            ),
        ),
    ),
)
FIELDS: Final = {field.name: field for section in SECTIONS for field in section.fields}
