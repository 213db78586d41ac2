"""The tabs of the usage pages that the user may open. They keep the period and the filters."""

from django.urls import reverse
from django.utils.translation import gettext

from console.layout.tabs import Tab
from console.usage_filters.filter_form import UsageFilters
from tenants.base.permissions import Permission
from tenants.security.authorization.actor import Actor


def tabs(actor: Actor, usage_filters: UsageFilters, current_name: str) -> list[Tab]:
    """Return the tabs. `current_name` is the URL name of the shown page, without `console:`."""
    pages = {"usage": gettext("Usage")}
    if actor.has_permission(Permission.READ_QUALITY) or actor.has_permission(
        Permission.READ_OWN_QUALITY
    ):
        pages["usage-quality"] = gettext("Quality")
    pages["usage-requests"] = gettext("Requests")
    return [
        Tab(
            title,
            f"{reverse(f'console:{name}')}?{usage_filters.query}",
            is_current=name == current_name,
        )
        for name, title in pages.items()
    ]
