"""The two lists: who is a member, and who was invited."""

from dataclasses import dataclass

from django.urls import reverse
from django.utils.translation import gettext


@dataclass(frozen=True, slots=True)
class Tab:
    title: str
    url: str
    is_here: bool


def tabs(here: str) -> list[Tab]:
    """`here`: the page's URL name."""
    titles = {"members": gettext("Members"), "members-invitations": gettext("Invitations")}
    return [Tab(title, reverse(f"console:{name}"), name == here) for name, title in titles.items()]
