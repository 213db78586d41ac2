"""The fields of the policy form for default models, with any number of languages."""

from django import forms

from caret.contracts.language_ids import LANGUAGES
from caret.contracts.policy import Tier
from console.views.policies.choices import PolicyChoices
from console.views.policies.model_fields import (
    add_default_model_fields,
    build_default_models,
    initial_default_models,
)
from tenants.policy.availability.enforcement import Capabilities
from tenants.policy.availability.model_offers import ModelOffer
from tests.fakes.tenants import make_policy

MODEL = "coder"
CHOICES = PolicyChoices(
    [ModelOffer(MODEL, "Coder", Tier.FAST)], Capabilities(missing=frozenset(), regions=())
)


def test_a_form_keeps_the_default_models_of_all_languages() -> None:
    models_by_language = dict.fromkeys(LANGUAGES, MODEL)
    policy = make_policy(default_models={Tier.FAST: models_by_language})
    empty_form = forms.Form()
    add_default_model_fields(empty_form, policy, CHOICES)
    # A browser sends the shown fields with their initial values.
    initial = initial_default_models(policy)
    submitted_form = forms.Form({name: initial.get(name, "") for name in empty_form.fields})
    add_default_model_fields(submitted_form, policy, CHOICES)

    assert submitted_form.is_valid()
    default_models = build_default_models(submitted_form.cleaned_data, base=policy)

    assert default_models == {"fast": models_by_language}
