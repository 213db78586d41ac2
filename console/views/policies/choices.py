"""The models and regions that a policy can name in this installation.

A policy may contain models, regions and rules that are not available now. Pages show such values
with a note.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from caret.contracts.policy import TenantPolicy, Tier
from console.texts.labels import TIER_LABELS
from tenants.base.billing_periods import utc_day
from tenants.policy.availability.enforcement import (
    Capabilities,
    Capability,
    find_unenforced,
    read_capabilities,
)
from tenants.policy.availability.model_offers import ModelOffer, get_offers
from tenants.security.authorization.actor import Actor

# Why a field of a policy is not enforced now, and what an operator must do; by the field's name.
WHY_NOT_ENFORCED: Final[dict[str, str | Promise]] = {
    "has_public_code_filter": _(
        "Not enforced: the gateways have no index of public code. An operator must build "
        "one and put it in use on the operators’ “Public code” page."
    ),
    "retrieval": _(
        "Not in effect: retrieval is off in this installation. An operator must start "
        "gateways and workers with CARET_RETRIEVAL=True."
    ),
}
NO_MODELS: Final = _(
    "There are no models to choose from. An operator must publish models for your plan."
)
ONE_REGION: Final = _(
    "All gateways are in one region, so there is nothing to choose from. To offer a choice, an "
    "operator must start gateways in other regions."
)


@dataclass(frozen=True, slots=True)
class PolicyChoices:
    # The models that the tenant can choose from, by tier and in the order of the operators' list.
    offers: list[ModelOffer]
    capabilities: Capabilities  # of the installation

    def is_missing(self, capability: Capability) -> bool:
        return capability in self.capabilities.missing


def read_choices(actor: Actor) -> PolicyChoices:
    """Return the choices of the actor's tenant. Up to four queries. Raises Forbidden."""
    return PolicyChoices(get_offers(actor=actor, on=utc_day(timezone.now())), read_capabilities())


def build_model_choices(
    choices: PolicyChoices, current: Iterable[str], tier: Tier | None = None
) -> list[tuple[str, str]]:
    """Return the names and labels of models.

    The offers of `tier` (None: of all tiers) come first, then other `current` names of the policy.
    """
    offers = [offer for offer in choices.offers if tier in (None, offer.tier)]
    # A model can be offered in several tiers. It is one choice, with the title of its first offer.
    # The label names these tiers, unless the choices are for one tier only.
    tier_labels: dict[str, list[str]] = {}
    titles: dict[str, str] = {}
    for offer in offers:
        tier_labels.setdefault(offer.name, []).append(str(TIER_LABELS[offer.tier]))
        titles.setdefault(offer.name, offer.title)
    offered_choices = [
        (name, f"{title} ({name})" if tier else _label_with_tiers(title, name, tier_labels[name]))
        for name, title in titles.items()
    ]
    gone_label = gettext("%(name)s (no longer offered)")
    return offered_choices + [
        (name, gone_label % {"name": name}) for name in sorted(set(current) - set(titles))
    ]


def build_region_choices(choices: PolicyChoices, current: Iterable[str]) -> list[tuple[str, str]]:
    """Return the regions that have a gateway, then other `current` regions of the policy."""
    regions = choices.capabilities.regions
    # If no region is known, no gateway has reported its region yet. Then the labels do not say that
    # a gateway is missing.
    gone_label = gettext("%(name)s (no gateway)") if regions else "%(name)s"
    other_names = sorted(set(current) - set(regions))
    return [(name, name) for name in regions] + [
        (name, gone_label % {"name": name}) for name in other_names
    ]


def list_unavailability_notes(policy: TenantPolicy, choices: PolicyChoices) -> dict[str, list[str]]:
    """Return the notes on unavailable values, by field. Pages show them next to the values."""
    notes = {
        field: [str(WHY_NOT_ENFORCED[field])]
        for field in find_unenforced(policy, choices.capabilities)
    }
    offered_names = {offer.name for offer in choices.offers}
    defaults = {
        name
        for models_by_language in policy.default_models.values()
        for name in models_by_language.values()
    }
    for field, names in (("models", policy.models or ()), ("default_models", defaults)):
        # Without published models there are no offers, and a policy may name any model.
        if choices.offers and (removed_names := sorted(set(names) - offered_names)):
            note = gettext("No longer offered: %(names)s")
            notes[field] = [note % {"names": ", ".join(removed_names)}]
    return notes


def _label_with_tiers(title: str, name: str, tiers: list[str]) -> str:
    return f"{title} ({name}) · {', '.join(tiers)}"
