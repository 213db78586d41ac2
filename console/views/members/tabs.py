"""The two lists: who is a member, and who was invited."""

from django.urls import reverse
from django.utils.translation import gettext

from console.layout.tabs import Tab


def tabs(here: str) -> list[Tab]:
    """`here`: the page's URL name."""
    titles = {"members": gettext("Members"), "members-invitations": gettext("Invitations")}
    return [Tab(title, reverse(f"console:{name}"), name == here) for name, title in titles.items()]
