"""All pages of the console, from its URL configuration, with an example of each argument.

A new URL without arguments needs no entry here: it is an operator's page if it begins with
`operators/`, and a member's page otherwise. A URL with arguments must be named, or
`test_page_registry.py` fails.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from tests.browser import example_urls
from tests.browser.routes import Route, all_routes
from tests.browser.sample_data import Scene, Visitor
from tests.integration.console.pages.queries import MAX_QUERIES


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the console, as one kind of visitor opens it."""

    pattern: str
    visitor: Visitor = Visitor.MEMBER
    path: Callable[[Scene], str] | None = None  # None: the pattern has no arguments
    variant: str = ""  # distinguishes several pages at one URL
    status: int = 200
    max_queries: int = MAX_QUERIES
    max_first_load_bytes: int = 250_000  # of the page and all that it loads, compressed

    @property
    def name(self) -> str:
        """Return the name for files and tests, such as keys-one-revoke."""
        words = re.sub(r"<[^>]*>", "one", self.pattern).replace("/", "-")
        name = "-".join(filter(None, [*words.split("-"), self.variant]))
        return name or "overview"

    def path_in(self, scene: Scene) -> str:
        return f"/{self.pattern}" if self.path is None else self.path(scene)

    def is_at(self, url: str, requested_path: str) -> bool:
        """Return True if `url` is this page's; `requested_path` may redirect to it."""
        # A URL with arguments cannot be made of the pattern, and an error does not redirect.
        own_path = (
            requested_path if "<" in self.pattern or self.status != 200 else f"/{self.pattern}"
        )
        return urlsplit(url).path == urlsplit(own_path).path


# Interfaces for other programs.
OTHER_INTERFACES: Final = ("api/v1/", "oauth/", "scim/v2/")
# Targets of forms, which are not opened as pages, with an example URL.
ACTIONS: Final[dict[str, Callable[[Scene], str]]] = {
    "operators/experiments/<action>": lambda scene: "/operators/experiments/stop",
    "operators/models/<action>": lambda scene: "/operators/models/publish",
    "operators/public-code/<action>": lambda scene: "/operators/public-code/stop",
    "operators/preferences": lambda scene: "/operators/preferences",
    "operators/sign-out": lambda scene: "/operators/sign-out",
    "operators/tenants/<uuid:tenant_id>/edit/<form_name>": example_urls.operators_change,
    "operators/tenants/<uuid:tenant_id>/owners": example_urls.with_suffix(
        example_urls.operators_tenant, "owners"
    ),
    "operators/tenants/<uuid:tenant_id>/reason": example_urls.operators_reason,
    "sign-in/saml/<uuid:tenant_id>": example_urls.saml,
    "sign-out": lambda scene: "/sign-out",
    "tenant": lambda scene: "/tenant",
    "budgets/<uuid:budget_id>/edit": example_urls.with_suffix(example_urls.budget, "edit"),
    "budgets/<uuid:budget_id>/secret": example_urls.with_suffix(example_urls.budget, "secret"),
    "budgets/<uuid:budget_id>/versions/<int:version>/undo": example_urls.with_suffix(
        example_urls.budget, "versions/1/undo"
    ),
    "sign-in-settings/domains": lambda scene: "/sign-in-settings/domains",
    "sign-in-settings/domains/<uuid:domain_id>/verify": example_urls.with_suffix(
        example_urls.domain, "verify"
    ),
    "sign-in-settings/groups/<uuid:group_id>/role": example_urls.with_suffix(
        example_urls.group, "role"
    ),
    "sign-in-settings/scim": lambda scene: "/sign-in-settings/scim",
    "sign-in-settings/second-factor/optional": lambda scene: (
        "/sign-in-settings/second-factor/optional"
    ),
    "sign-in-settings/second-factor/required": lambda scene: (
        "/sign-in-settings/second-factor/required"
    ),
    "members/invitations/<uuid:invitation_id>/revoke": example_urls.with_suffix(
        example_urls.invitation_row, "revoke"
    ),
    "members/invitations/<uuid:invitation_id>/send": example_urls.with_suffix(
        example_urls.invitation_row, "send"
    ),
    "onboarding/restore": lambda scene: "/onboarding/restore",
    "onboarding/dismiss": lambda scene: "/onboarding/dismiss",
    "teams/<uuid:team_id>/add": example_urls.with_suffix(example_urls.team, "add"),
    "teams/<uuid:team_id>/rename/undo": example_urls.with_suffix(
        example_urls.team, "rename/undo?from=A&to=B"
    ),
    "teams/<uuid:team_id>/members/<uuid:user_id>/back": example_urls.with_suffix(
        example_urls.membership_of_team, "back"
    ),
    "teams/<uuid:team_id>/members/<uuid:user_id>/out": example_urls.with_suffix(
        example_urls.membership_of_team, "out"
    ),
    "account/my-data/bundle": lambda scene: "/account/my-data/bundle",
    "account/my-data/consent/<kind>": lambda scene: "/account/my-data/consent/content_capture",
    "privacy/data-subjects/<uuid:user_id>/bundle": example_urls.with_suffix(
        example_urls.person, "bundle"
    ),
    "exports/<uuid:export_id>/cancel": example_urls.with_suffix(example_urls.export, "cancel"),
    "exports/<uuid:export_id>/fetch": example_urls.with_suffix(example_urls.export, "fetch"),
    "keys/test": lambda scene: "/keys/test",
    "playground/end": lambda scene: "/playground/end",
    "playground/start": lambda scene: "/playground/start",
    "policies/versions/<int:version>/undo": example_urls.with_suffix(
        example_urls.policy_version, "undo"
    ),
    "policies/overrides/<kind>/<uuid:subject_id>/versions/<int:version>/undo": (
        example_urls.with_suffix(example_urls.policy_override, "versions/1/undo")
    ),
    "retention/classes/<data_class>/versions/<int:version>/undo": example_urls.with_suffix(
        example_urls.data_class, "versions/1/undo"
    ),
    "audit-sinks/<uuid:sink_id>/replay": example_urls.with_suffix(example_urls.sink, "replay"),
    "audit-sinks/<uuid:sink_id>/test": example_urls.with_suffix(example_urls.sink, "test"),
}
# Downloads and other responses that are not pages, with an example if the tests request it.
FILES: Final[dict[str, Callable[[Scene], str] | None]] = {
    ".well-known/caret-signing-keys.json": None,
    "account/recovery-codes/file": None,
    "billing/invoices/<int:number>/json": None,
    "billing/invoices/<int:number>/pdf": None,
    "downloads/<name>": None,
    "exports/file/<token>": None,
    "exports/<uuid:export_id>/proof": example_urls.with_suffix(example_urls.export, "proof"),
    "healthz": None,
    "operators/tenants/<uuid:tenant_id>/certificate": None,
    "retention/certificates/<uuid:certificate_id>/file": example_urls.with_suffix(
        example_urls.certificate, "file"
    ),
    "sign-in/saml/<uuid:tenant_id>/metadata": None,
}
# Redirects to another page.
REDIRECTS: Final = frozenset(
    {
        "invitation/<token>",
        "reset-password/<uuid:user_id>/<token>",
        "sign-up/<token>",
        "sign-in/passkey",  # only the response to a form shows this page
        "sign-in/provider/<provider_id>",
        "sign-in/saml/<uuid:tenant_id>/done",
    }
)
# Pages with arguments, and pages that do not have the default visitor, variant or limits. A pattern
# with several pages is listed with all of them.
_LISTED: Final = (
    Page(""),
    Page("", variant="not-found", path=lambda scene: "/nothing", status=404),
    Page("help/<slug:name>", path=lambda scene: "/help/policies"),
    Page("help/rest-api", max_first_load_bytes=700_000),  # loads Swagger UI
    Page("playground", max_first_load_bytes=350_000),  # loads an editor
    Page("sign-in", Visitor.NOBODY),
    Page("sign-in/code", Visitor.GAVE_PASSWORD),
    Page("invitation", Visitor.NOBODY, example_urls.invitation),
    Page("forgot-password", Visitor.NOBODY),
    Page("forgot-password/sent", Visitor.NOBODY),
    Page("reset-password", Visitor.NOBODY, example_urls.reset_link),
    Page("sign-up", Visitor.NOBODY),
    Page("sign-up/sent", Visitor.NOBODY),
    Page("sign-up/confirm", Visitor.NOBODY, example_urls.sign_up_link),
    Page("keys/<lookup_id>", path=example_urls.key),
    Page("keys/<lookup_id>/rotate", path=example_urls.with_suffix(example_urls.key, "rotate")),
    Page("keys/<lookup_id>/revoke", path=example_urls.with_suffix(example_urls.key, "revoke")),
    Page("policies/review", path=example_urls.policy_version_to_restore),
    Page("policies/versions/<int:version>", path=example_urls.policy_version),
    Page("policies/overrides/<kind>/<uuid:subject_id>", path=example_urls.policy_override),
    Page(
        "policies/overrides/<kind>/<uuid:subject_id>/review",
        path=example_urls.with_suffix(example_urls.policy_override, "review"),
    ),
    Page("members/<uuid:user_id>", path=example_urls.member),
    Page("members/<uuid:user_id>/role", path=example_urls.with_suffix(example_urls.member, "role")),
    Page(
        "members/<uuid:user_id>/transfer",
        path=example_urls.with_suffix(example_urls.member, "transfer"),
    ),
    Page(
        "members/<uuid:user_id>/remove",
        path=example_urls.with_suffix(example_urls.member, "remove"),
    ),
    Page("teams/<uuid:team_id>", path=example_urls.team),
    Page("teams/<uuid:team_id>/rename", path=example_urls.with_suffix(example_urls.team, "rename")),
    Page("teams/<uuid:team_id>/delete", path=example_urls.with_suffix(example_urls.team, "delete")),
    Page(
        "sign-in-settings/domains/<uuid:domain_id>/release",
        path=example_urls.with_suffix(example_urls.domain, "release"),
    ),
    Page(
        "sign-in-settings/scim/<uuid:token_id>/revoke",
        path=example_urls.with_suffix(example_urls.scim_token, "revoke"),
    ),
    Page("account/my-data/consent/<kind>/withdraw", path=example_urls.consent_to_withdraw),
    Page("privacy/data-subjects/<uuid:user_id>", path=example_urls.person),
    Page(
        "privacy/data-subjects/<uuid:user_id>/erase",
        path=example_urls.with_suffix(example_urls.person, "erase"),
    ),
    Page("retention/classes/<data_class>", path=example_urls.data_class),
    Page(
        "retention/holds/<uuid:hold_id>/release",
        path=example_urls.with_suffix(example_urls.hold, "release"),
    ),
    Page("retention/certificates/<uuid:certificate_id>", path=example_urls.certificate),
    Page("exports/<uuid:export_id>", path=example_urls.export),
    Page("billing/invoices/<int:number>", path=example_urls.invoice),
    Page("audit-sinks/<uuid:sink_id>", path=example_urls.sink),
    Page("budgets/<uuid:budget_id>", path=example_urls.budget, variant="one"),
    Page("device"),
    Page("device", path=example_urls.device_request, variant="with-code"),
    Page(
        "budgets/<uuid:budget_id>/delete",
        path=example_urls.with_suffix(example_urls.budget, "delete"),
    ),
    Page(
        "audit-sinks/<uuid:sink_id>/delete",
        path=example_urls.with_suffix(example_urls.sink, "delete"),
    ),
    Page("account/confirm", Visitor.HAS_APP),
    Page("account/confirm/code", Visitor.HAS_APP),
    Page("account/confirm/passkey", Visitor.HAS_PASSKEY),
    Page("account/second-factor"),
    Page("account/second-factor", Visitor.HAS_APP, variant="with-app"),
    Page("account/second-factor", Visitor.HAS_PASSKEY, variant="with-passkey"),
    Page("account/second-factor/app/remove", Visitor.HAS_APP),
    Page("account/passkeys/<int:pk>", Visitor.HAS_PASSKEY, example_urls.passkey),
    Page(
        "account/passkeys/<int:pk>/remove",
        Visitor.HAS_PASSKEY,
        example_urls.with_suffix(example_urls.passkey, "remove"),
    ),
    Page("account/recovery-codes", Visitor.HAS_APP),
    Page("account/recovery-codes/new", Visitor.HAS_APP),
    Page("account/resume/<token>", path=example_urls.pending_form),
    Page("usage/requests/<uuid:request_id>", path=example_urls.request),
    Page("operators/sign-in", Visitor.NOBODY),
    # In the tests, no gateway knows this pool and this replica, and no operator added the replica.
    # So only the page that undrains the replica exists.
    Page(
        "operators/replicas/<path:replica>/drain",
        Visitor.OPERATOR,
        lambda scene: "/operators/replicas/10.0.0.1:8000/drain",
        status=404,
    ),
    Page(
        "operators/replicas/<path:replica>/undrain",
        Visitor.OPERATOR,
        lambda scene: "/operators/replicas/10.0.0.1:8000/undrain",
    ),
    Page(
        "operators/pools/<pool>/add",
        Visitor.OPERATOR,
        lambda scene: "/operators/pools/demo-fast/add",
        status=404,
    ),
    Page(
        "operators/pools/<pool>/replicas/<path:replica>/remove",
        Visitor.OPERATOR,
        lambda scene: "/operators/pools/demo-fast/replicas/10.0.0.1:8000/remove",
        status=404,
    ),
    Page(
        "operators/evaluations/<uuid:evaluation_id>",
        Visitor.OPERATOR,
        example_urls.operators_evaluation,
    ),
    Page("operators/tenants/<uuid:tenant_id>", Visitor.OPERATOR, example_urls.operators_tenant),
    Page(
        "operators/tenants/<uuid:tenant_id>",
        Visitor.OPERATOR_WITH_REASON,
        example_urls.operators_tenant,
        variant="with-reason",
        # More than other pages: it writes an audit entry for the view, and renews the session.
        max_queries=16,
    ),
)
NO_PAGES: Final = ACTIONS.keys() | FILES.keys() | REDIRECTS


def all_pages() -> list[Page]:
    listed_patterns = {page.pattern for page in _LISTED}
    other_routes = [route for route in _routes_of_pages() if route.pattern not in listed_patterns]
    return [
        *_LISTED,
        *(_page_without_example(route) for route in other_routes if not route.has_arguments),
    ]


def _page_without_example(route: Route) -> Page:
    is_operators = route.pattern.startswith("operators/")
    return Page(route.pattern, Visitor.OPERATOR if is_operators else Visitor.MEMBER)


def unknown_patterns() -> list[str]:
    """Return the patterns with arguments that have no example."""
    listed_patterns = {page.pattern for page in _LISTED}
    return [
        route.pattern
        for route in _routes_of_pages()
        if route.has_arguments and route.pattern not in listed_patterns
    ]


def vanished_patterns() -> list[str]:
    """Return the patterns named here that no longer exist."""
    existing = {route.pattern for route in all_routes()}
    return sorted((NO_PAGES | {page.pattern for page in _LISTED}) - existing)


def _routes_of_pages() -> list[Route]:
    return [
        route
        for route in all_routes()
        if route.pattern not in NO_PAGES and not route.pattern.startswith(OTHER_INTERFACES)
    ]
