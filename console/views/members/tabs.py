"""The tabs of members, seats and invitations."""

from django.urls import reverse
from django.utils.translation import gettext

from console.layout.tabs import Tab


def tabs(current_name: str) -> list[Tab]:
    """Return the tabs. `current_name` is the URL name of the shown page, without `console:`."""
    titles = {
        "members": gettext("Members"),
        "members-seats": gettext("Seats"),
        "members-invitations": gettext("Invitations"),
    }
    return [
        Tab(title, reverse(f"console:{name}"), is_current=name == current_name)
        for name, title in titles.items()
    ]
