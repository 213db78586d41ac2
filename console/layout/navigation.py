"""The navigation of the console: the items of the sidebar, the account menu and the search.

Each item leads to an area of the console. The URL names of the area's pages are the name of the
area (`keys`), or begin with it (`keys-new`). Therefore the sidebar can mark the current area. Users
see only the items that their role may open.
"""

from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from tenants.base.permissions import Permission
from tenants.security.authorization.actor import Actor

_P = Permission
_EVERYBODY: Final[tuple[Permission, ...]] = ()
_USAGE: Final = (_P.READ_USAGE, _P.READ_OWN_USAGE)
_QUALITY: Final = (_P.READ_QUALITY, _P.READ_OWN_QUALITY)


@dataclass(frozen=True, slots=True)
class NavigationItem:
    area: str  # also the URL name of its first page, and the name of its icon
    title: str | Promise
    needs: tuple[Permission, ...]  # one of these is enough; empty: open to everybody
    words: str | Promise = ""  # more search terms


@dataclass(frozen=True, slots=True)
class NavigationSection:
    title: str | Promise  # "": the first section, which has no title
    items: tuple[NavigationItem, ...]


@dataclass(frozen=True, slots=True)
class NavigationLink:
    """An item as a user sees it."""

    icon: str
    title: str | Promise
    url: str
    is_current: bool
    words: str | Promise  # more search terms


@dataclass(frozen=True, slots=True)
class NavigationGroup:
    """A section as a user sees it."""

    title: str  # "": the first section
    links: list[NavigationLink]


_Item: Final = NavigationItem
SECTIONS: Final = (
    NavigationSection(
        "",
        (
            _Item("overview", _("Overview"), _EVERYBODY, _("home start metrics")),
            _Item(
                "start",
                _("Get started"),
                (_P.USE_PLAYGROUND,),
                _("get started setup checklist"),
            ),
            _Item(
                "editors",
                _("Editors"),
                (_P.USE_PLAYGROUND,),
                _("settings extension vsix language server download neovim vim plugin"),
            ),
            _Item("playground", _("Playground"), (_P.USE_PLAYGROUND,), _("try editor prompt")),
        ),
    ),
    NavigationSection(
        _("Analytics"),
        (
            _Item("usage", _("Usage and quality"), _USAGE, _("requests reports acceptance slow")),
            _Item("experiments", _("Experiments"), _QUALITY, _("variants intervals control")),
            _Item("cache", _("Cache"), _USAGE, _("prefix hits purge namespace isolation")),
        ),
    ),
    NavigationSection(
        _("Access"),
        (
            _Item(
                "keys",
                _("API keys"),
                (_P.READ_KEYS,),
                _("tokens rotate revoke"),
            ),
            _Item(
                "members",
                _("Members"),
                (_P.READ_MEMBERS,),
                _("people roles invite invitations"),
            ),
            _Item("teams", _("Teams"), (_P.READ_TEAMS,), _("groups")),
            _Item(
                "access",
                _("Single sign-on"),
                (_P.READ_SIGN_IN_SETTINGS,),
                _("sso saml openid scim domains"),
            ),
        ),
    ),
    NavigationSection(
        _("Policies"),
        (
            _Item("policies", _("Policies"), (_P.READ_POLICY,), _("rules limits models overrides")),
            _Item(
                "exclusion",
                _("Content exclusion"),
                (_P.READ_POLICY,),
                _("paths secrets denied"),
            ),
            _Item(
                "privacy",
                _("Privacy"),
                (_P.READ_CONSENT,),
                _("consent erasure gdpr content capture telemetry"),
            ),
            _Item(
                "retention",
                _("Retention"),
                (_P.READ_RETENTION,),
                _("holds purges certificates"),
            ),
        ),
    ),
    NavigationSection(
        _("Billing"),
        (
            _Item("billing", _("Billing"), (_P.READ_BILLING,), _("plan price invoice ledger")),
            _Item("budgets", _("Budgets"), (_P.READ_BILLING,), _("limit stop alert spend")),
        ),
    ),
    NavigationSection(
        _("Compliance"),
        (
            _Item("audit", _("Audit log"), (_P.READ_AUDIT,), _("trail history actor chain verify")),
            _Item("exports", _("Exports"), (_P.EXPORT,), _("download report evidence pack csv")),
            _Item(
                "sinks",
                _("Audit log streaming"),
                (_P.READ_AUDIT,),
                _("webhook siem syslog splunk stream"),
            ),
        ),
    ),
)  # fmt: skip
# Items of the account menu.
ACCOUNT_ITEMS: Final = (
    NavigationItem("own", _("Your data"), _EVERYBODY, _("consent privacy export")),
    NavigationItem(
        "my-keys",
        _("Your keys and devices"),
        (_P.READ_OWN_KEYS,),
        _("api tokens editors sign in revoke"),
    ),
    NavigationItem("password", _("Password"), _EVERYBODY, _("change forgot credentials")),
    NavigationItem(
        "preferences", _("Preferences"), _EVERYBODY, _("language time zone theme dark light")
    ),
)


def list_groups(request: HttpRequest, actor: Actor) -> list[NavigationGroup]:
    """Return the groups of the sidebar. Groups without a visible link are left out."""
    all_groups = [
        NavigationGroup(str(section.title), _visible_links(request, actor, section.items))
        for section in SECTIONS
    ]
    return [group for group in all_groups if group.links]


def list_account_links(request: HttpRequest, actor: Actor) -> list[NavigationLink]:
    return _visible_links(request, actor, ACCOUNT_ITEMS)


def list_all_links(request: HttpRequest, actor: Actor) -> list[NavigationLink]:
    items = [item for section in SECTIONS for item in section.items]
    return _visible_links(request, actor, (*items, *ACCOUNT_ITEMS))


def _visible_links(
    request: HttpRequest, actor: Actor, items: tuple[NavigationItem, ...]
) -> list[NavigationLink]:
    current_name = _current_url_name(request)
    return [
        NavigationLink(
            icon=item.area,
            title=item.title,
            url=reverse(f"console:{item.area}"),
            is_current=current_name == item.area or current_name.startswith(f"{item.area}-"),
            words=item.words,
        )
        for item in items
        if not item.needs or any(actor.has_permission(permission) for permission in item.needs)
    ]


def _current_url_name(request: HttpRequest) -> str:
    """Return the name of the page's URL; "" outside the console."""
    match = request.resolver_match
    if match is None or match.namespace != "console":
        return ""
    return match.url_name or ""
