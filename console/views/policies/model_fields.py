"""Form fields for models and regions.

Policy and override forms offer the allowed models and regions to choose from. The policy form also
has fields for default models.
"""

from collections.abc import Mapping
from itertools import count
from typing import Any, Final

from django import forms
from django.utils.translation import gettext, pgettext
from django.utils.translation import gettext_lazy as _

from caret.contracts.language_ids import LANGUAGES
from caret.contracts.policy import ANY_LANGUAGE, PolicyOverride, TenantPolicy, Tier
from console.texts.labels import TIER_LABELS
from console.views.policies.choices import (
    NO_MODELS,
    ONE_REGION,
    PolicyChoices,
    build_model_choices,
    build_region_choices,
)
from console.views.policies.form_fields import AS_TYPED, offer_names
from tenants.base.errors import InvalidValue

_EMPTY_ROWS: Final = 2  # after the rows of the languages that have a default model
_MAX_ROWS: Final = len(LANGUAGES)  # of one tier; a row is a language, entered once, and its model
_MAX_LANGUAGE_CHARS: Final = 40


def offer_policy_choices(
    form: forms.Form, current: TenantPolicy | PolicyOverride, choices: PolicyChoices
) -> None:
    """Set the models and regions to choose from, or say why there is no choice."""
    models = build_model_choices(choices, current.models or ())
    offer_names(form, "models", models, why_not="" if models else NO_MODELS)
    regions = build_region_choices(choices, current.regions or ())
    has_no_choice = len(choices.capabilities.regions) <= 1 and current.regions is None
    offer_names(form, "regions", regions, why_not=ONE_REGION if has_no_choice else "")


def add_default_model_fields(
    form: forms.Form, policy: TenantPolicy, choices: PolicyChoices
) -> None:
    """Add the fields of each tier that has models to choose from.

    These are rows of a language and its model, and a model for all other languages.
    """
    for tier in Tier:
        current = policy.default_models.get(tier, {})
        options = build_model_choices(choices, current.values(), tier)
        if not options:
            continue
        form.fields[_tier_field_name(tier)] = _model_field(_tier_field_title(tier), options)
        for number in range(_num_rows(form, tier, current)):
            language_field, model_field = _row_names(tier, number)
            form.fields[language_field] = forms.CharField(
                label=_("Language"),
                required=False,
                max_length=_MAX_LANGUAGE_CHARS,
                widget=forms.TextInput(attrs=AS_TYPED | {"list": "languages"}),
            )
            form.fields[model_field] = _model_field(_("Model for this language"), options)


def group_default_models(form: forms.Form) -> list[list[str]]:
    """Return the names of the default models' fields, row by row."""
    rows: list[list[str]] = []
    for tier in Tier:
        if _tier_field_name(tier) in form.fields:
            rows.append([_tier_field_name(tier)])
        for number in count():
            pair = _row_names(tier, number)
            if pair[0] not in form.fields:
                break
            rows.append(list(pair))
    return rows


def initial_default_models(policy: TenantPolicy) -> dict[str, str]:
    values: dict[str, str] = {}
    for tier, models_by_language in policy.default_models.items():
        values[_tier_field_name(tier)] = models_by_language.get(ANY_LANGUAGE, "")
        for number, language in enumerate(_list_named_languages(models_by_language)):
            names = _row_names(tier, number)
            values |= dict(zip(names, (language, models_by_language[language]), strict=True))
    return values


def build_default_models(
    cleaned: Mapping[str, Any], *, base: TenantPolicy
) -> dict[str, dict[str, str]]:
    """Return the chosen models by tier and language, in the form of the policy document.

    Tiers without fields keep the models of `base`. Raises InvalidValue.
    """
    chosen_models: dict[str, dict[str, str]] = {}
    for tier in Tier:
        tier_field = _tier_field_name(tier)
        if tier_field not in cleaned:
            chosen_models[tier] = dict(base.default_models.get(tier, {}))
            continue
        chosen_models[tier] = {ANY_LANGUAGE: cleaned[tier_field]} if cleaned[tier_field] else {}
        for number in count():
            language_field, model_field = _row_names(tier, number)
            if language_field not in cleaned:
                break
            language = cleaned[language_field].lower()
            row = _read_row(language_field, language, cleaned[model_field])
            if row.keys() & chosen_models[tier].keys():
                raise InvalidValue(language_field, "Enter each language only once.")
            chosen_models[tier] |= row
    return {
        tier: models_by_language
        for tier, models_by_language in chosen_models.items()
        if models_by_language
    }


def list_languages() -> list[str]:
    """Return the language identifiers that the fields suggest, sorted."""
    return sorted(LANGUAGES)


def _read_row(field: str, language: str, model: str) -> dict[str, str]:
    """Return {language: model}; {} for an empty row. Raises InvalidValue, which names `field`."""
    if not language and not model:
        return {}
    if language not in LANGUAGES:
        raise InvalidValue(field, "Enter the identifier of a language, such as python.")
    if not model:
        raise InvalidValue(field, "Choose a model, or remove the language.")
    return {language: model}


def _num_rows(form: forms.Form, tier: Tier, current: Mapping[str, str]) -> int:
    """Return the number of submitted rows, or of rows to show in a form without input."""
    if form.is_bound:
        row_numbers = (
            number for number in range(_MAX_ROWS) if _row_names(tier, number)[0] in form.data
        )
        return max(row_numbers, default=-1) + 1
    return min(len(_list_named_languages(current)) + _EMPTY_ROWS, _MAX_ROWS)


def _list_named_languages(models_by_language: Mapping[str, str]) -> list[str]:
    return sorted(language for language in models_by_language if language != ANY_LANGUAGE)


def _tier_field_name(tier: Tier) -> str:
    return f"default_models_{tier}"


def _row_names(tier: Tier, number: int) -> tuple[str, str]:
    return f"default_models_{tier}_language_{number}", f"default_models_{tier}_model_{number}"


def _tier_field_title(tier: Tier) -> str:
    title = gettext("%(tier)s tier: model for all other languages")
    return title % {"tier": TIER_LABELS[tier]}


def _model_field(label: Any, options: list[tuple[str, str]]) -> forms.ChoiceField:
    return forms.ChoiceField(
        label=label,
        required=False,
        choices=[("", pgettext("model", "The operator's default")), *options],
    )
