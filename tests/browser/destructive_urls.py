"""The console's URLs that accept forms, and those among them that require a step-up.

For a step-up, users whose last sign-in is older than five minutes sign in again.

A new URL must be named here, or `test_step_up_required.py` fails.
"""

import inspect
from typing import Final

from tests.browser.pages import ACTIONS, all_pages
from tests.browser.routes import Route, all_routes
from tests.browser.sample_data import Scene

# Actions that cannot be undone, end something in use, decide who gets access, reveal personal data,
# or change invoices.
REQUIRE_STEP_UP: Final = frozenset(
    {
        "sign-in-settings/domains/<uuid:domain_id>/release",
        "sign-in-settings/domains/<uuid:domain_id>/verify",
        "sign-in-settings/groups/<uuid:group_id>/role",
        "sign-in-settings/provider/openid",
        "sign-in-settings/provider/remove",
        "sign-in-settings/provider/saml",
        "sign-in-settings/scim",
        "sign-in-settings/scim/<uuid:token_id>/revoke",
        "sign-in-settings/second-factor/optional",
        "sign-in-settings/second-factor/required",
        "billing/profile/edit",
        "budgets/<uuid:budget_id>/delete",
        "cache/purge",
        "keys/<lookup_id>/revoke",
        "keys/policy",
        "members/<uuid:user_id>/remove",
        "members/<uuid:user_id>/role",
        "privacy/data-subjects/<uuid:user_id>/bundle",
        "privacy/data-subjects/<uuid:user_id>/erase",
        "privacy/small-groups",
        "retention/classes/<data_class>",
        "retention/classes/<data_class>/versions/<int:version>/undo",
        "retention/holds/<uuid:hold_id>/release",
        "audit-sinks/<uuid:sink_id>/delete",
        "teams/<uuid:team_id>/delete",
    }
)
# Patterns of REQUIRE_STEP_UP whose page previews the change: only its form requires the step-up.
PREVIEWS_WITHOUT_STEP_UP: Final = frozenset(
    {"retention/classes/<data_class>", "retention/holds/<uuid:hold_id>/release"}
)
# These require a step-up for some form values, or only when a change is saved. They have tests in
# tests/integration/console/pages/test_step_up.py.
SOMETIMES_REQUIRE_STEP_UP: Final = frozenset(
    {
        "members/invitations/<uuid:invitation_id>/send",
        "members/invite",
        "members/<uuid:user_id>/transfer",
        "policies/overrides/<kind>/<uuid:subject_id>/review",
        "policies/overrides/<kind>/<uuid:subject_id>/versions/<int:version>/undo",
        "policies/review",
        "policies/versions/<int:version>/undo",
    }
)
NEVER_REQUIRE_STEP_UP: Final = frozenset(
    {
        # Signing in and out, and the user's own data. Withdrawing consent is as easy as giving it.
        "account/my-data/bundle",
        "account/my-data/consent/<kind>",
        "account/my-data/consent/<kind>/withdraw",
        "account/password",  # asks for the current password itself
        "account/preferences",
        "account/reauthenticate",
        "forgot-password",
        "invitation",
        "reset-password",
        "sign-in",
        "sign-in/passkey",
        "sign-up",
        "sign-up/confirm",
        "sign-out",
        "onboarding/restore",
        "onboarding/dismiss",
        "tenant",
        # Called by editors, without a session.
        "oauth/device_authorization",
        "oauth/token",
        # Queries, and forms whose changes are saved only after a review.
        "audit/verify",
        "content-exclusion",
        "healthz",
        "policies/edit",
        "policies/overrides/<kind>/<uuid:subject_id>",
        "policies/overrides/new",
        "privacy/content-capture",
        "exports/verify",
        "keys/test",
        "retention/verify",
        "audit-sinks/<uuid:sink_id>/test",
        # Actions whose effect can be ended, changed back or made again.
        "sign-in-settings/domains",
        "budgets/<uuid:budget_id>/edit",
        "budgets/<uuid:budget_id>/secret",
        "budgets/<uuid:budget_id>/versions/<int:version>/undo",
        "budgets/new",
        "exports/<uuid:export_id>/cancel",
        "exports/<uuid:export_id>/fetch",
        "exports/new",
        "account/keys/new",
        "device",
        "keys/<lookup_id>/rotate",
        "keys/new",
        "members/invitations/<uuid:invitation_id>/revoke",
        "playground/end",
        "playground/start",
        "retention/holds/new",
        "audit-sinks/<uuid:sink_id>/replay",
        "audit-sinks/new",
        "teams/<uuid:team_id>/add",
        "teams/<uuid:team_id>/members/<uuid:user_id>/back",
        "teams/<uuid:team_id>/members/<uuid:user_id>/out",
        "teams/<uuid:team_id>/rename",
        "teams/<uuid:team_id>/rename/undo",
        "teams/new",
    }
)


def patterns_of_forms() -> set[str]:
    """Return the URL patterns of the console's views that accept forms.

    The views of django-allauth and of the operators' pages are left out.
    """
    return {route.pattern for route in all_routes() if _is_ours(route) and _takes_forms(route)}


def is_page_guarded(pattern: str) -> bool:
    """Return True if a GET request for this pattern of REQUIRE_STEP_UP requires a step-up, too."""
    return pattern not in PREVIEWS_WITHOUT_STEP_UP and pattern not in ACTIONS


def path_in(scene: Scene, pattern: str) -> str:
    if pattern in ACTIONS:
        return ACTIONS[pattern](scene)
    return next(page.path_in(scene) for page in all_pages() if page.pattern == pattern)


def _is_ours(route: Route) -> bool:
    return route.view.__module__.startswith("console.views.")


def _takes_forms(route: Route) -> bool:
    """Return True if the view accepts POST.

    Django's require_http_methods(request_method_list) is the outermost decorator. A view without it
    accepts all methods.
    """
    methods = inspect.getclosurevars(route.view).nonlocals.get("request_method_list")
    return methods is None or "POST" in methods
