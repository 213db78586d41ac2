"""Search for pages, settings, actions, documents, keys, members and teams.

The dialog that Ctrl+K opens shows the results. Without scripts, the search is a page.
"""

from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_GET

from console.layout.htmx import render_page
from console.layout.navigation import NavigationLink, list_all_links
from console.layout.search_entries import find_entries, has_words
from console.sign_in.current_member import CurrentMember, member_required
from console.views.help.documents import documents_by_name
from tenants.base.permissions import Permission
from tenants.identity.api_keys.search import KeyFilter, KeyOrder, find_keys
from tenants.identity.members.search import MemberFilter, search_members
from tenants.identity.teams.search import TeamFilter, find_teams
from tenants.security.authorization.actor import Actor

_MAX_TEXT_CHARS: Final = 100  # further characters are ignored
_MAX_WORDS: Final = 8  # further words are ignored
_MIN_CHARS: Final = 2  # shorter texts find only pages of the sidebar and the account menu
_MAX_ROWS: Final = 5  # of keys, of members and of teams


@dataclass(frozen=True, slots=True)
class SearchHit:
    icon: str  # name of a <c-icon>
    title: str
    hint: str  # shown next to the title; "": none
    url: str


@require_GET
@member_required
def search(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    search_text = request.GET.get("q", "")[:_MAX_TEXT_CHARS]
    # Split like the texts in `has_words`.
    words = search_text.casefold().replace("-", " ").split()[:_MAX_WORDS]
    hits = _search_all(member.actor, search_text.strip(), words)
    links = [link for link in list_all_links(request, member.actor) if _has_words(link, words)]
    context = {"search_text": search_text, "links": links, "hits": hits}
    return render_page(
        request, member, "console/search.html", context, part="console/_search_results.html"
    )


def _has_words(link: NavigationLink, words: list[str]) -> bool:
    return has_words(words, link.title, link.words)


def _search_entries(actor: Actor, words: list[str]) -> list[SearchHit]:
    return [
        SearchHit(icon=entry.icon, title=str(entry.title), hint="", url=entry.url)
        for entry in find_entries(actor, words)
    ]


def _search_documents(words: list[str]) -> list[SearchHit]:
    """Return the documents whose title, description and headings together have all words."""
    return [
        SearchHit(
            icon="help",
            title=document.title,
            hint=gettext("Document"),
            url=reverse("console:help-document", args=[document.name]),
        )
        for document in documents_by_name().values()
        if has_words(words, document.title, document.description, *document.headings)
    ]


def _search_all(actor: Actor, search_text: str, words: list[str]) -> list[SearchHit]:
    """Return the hits that the actor may see. Makes at most three queries."""
    if len(search_text) < _MIN_CHARS:
        return []
    return [
        *_search_entries(actor, words),
        *_search_members(actor, search_text),
        *_search_teams(actor, search_text),
        *_search_keys(actor, search_text),
        *_search_documents(words),
    ]


def _search_keys(actor: Actor, search_text: str) -> list[SearchHit]:
    if not (
        actor.has_permission(Permission.READ_KEYS) or actor.has_permission(Permission.READ_OWN_KEYS)
    ):
        return []
    key_filter = KeyFilter(text=search_text, order=KeyOrder.NAME, is_descending=False)
    page = find_keys(
        actor=actor, key_filter=key_filter, limit=_MAX_ROWS, cursor=None, now=timezone.now()
    )
    return [
        SearchHit(
            icon="keys",
            title=key.name,
            hint=f"cpk_{key.kind}_{key.lookup_id}",
            url=reverse("console:keys-key", args=[key.lookup_id]),
        )
        for key in page.rows
    ]


def _search_members(actor: Actor, search_text: str) -> list[SearchHit]:
    if not actor.has_permission(Permission.READ_MEMBERS):
        return []
    member_filter = MemberFilter(text=search_text)
    page = search_members(actor=actor, member_filter=member_filter, limit=_MAX_ROWS, cursor=None)
    return [
        SearchHit(
            icon="members",
            title=row.name or row.email,
            hint=row.email,
            url=reverse("console:members-member", args=[row.user_id]),
        )
        for row in page.rows
    ]


def _search_teams(actor: Actor, search_text: str) -> list[SearchHit]:
    if not actor.has_permission(Permission.READ_TEAMS):
        return []
    page = find_teams(
        actor=actor, team_filter=TeamFilter(text=search_text), limit=_MAX_ROWS, cursor=None
    )
    return [
        SearchHit(
            icon="teams",
            title=team.name,
            hint="",
            url=reverse("console:teams-team", args=[team.id]),
        )
        for team in page.rows
    ]
