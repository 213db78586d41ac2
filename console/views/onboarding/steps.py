"""The onboarding steps for the permissions of a role, and their completion."""

from dataclasses import dataclass

from django.utils.translation import gettext

from tenants.base.permissions import Permission
from tenants.identity.api_keys.search import read_key_onboarding_status
from tenants.identity.members.search import MemberFilter, search_members
from tenants.identity.own_keys.operations import find_own_key_terms
from tenants.privacy.retention.queries import has_own_period
from tenants.security.authorization.actor import Actor


@dataclass(frozen=True, slots=True)
class SetupStep:
    title: str
    text: str
    url_name: str  # page where the step is done
    button: str
    is_done: bool


def build_onboarding_steps(actor: Actor) -> list[SetupStep]:
    """Return the steps in their order. Makes at most five queries."""
    return [*_build_completion_steps(actor), *_build_tenant_steps(actor)]


def _build_completion_steps(actor: Actor) -> list[SetupStep]:
    if not actor.has_permission(Permission.USE_PLAYGROUND):
        return []
    facts = read_key_onboarding_status(actor=actor)
    may_create = find_own_key_terms(actor=actor).is_allowed
    return [
        SetupStep(
            gettext("Create a key"),
            gettext("You see it once, together with the settings for your editor.")
            if may_create
            else gettext("Ask an administrator to create a key for you."),
            "console:my-keys-new" if may_create else "",
            gettext("New key"),
            facts.has_key,
        ),
        SetupStep(
            gettext("Try the playground"),
            gettext(
                "An editor in your browser with real completions. Its key is valid for an hour."
            ),
            "console:playground",
            gettext("Open the playground"),
            facts.has_played,
        ),
        SetupStep(
            gettext("Get a completion in your editor"),
            gettext(
                "Install Caret's extension, or set up another plugin. This step is complete after "
                "the first use of a key."
            ),
            "console:editors",
            gettext("Editors"),
            facts.has_completed,
        ),
    ]


def _build_tenant_steps(actor: Actor) -> list[SetupStep]:
    steps = []
    if actor.has_permission(Permission.WRITE_MEMBERS):
        page = search_members(actor=actor, member_filter=MemberFilter(), limit=1, cursor=None)
        steps.append(
            SetupStep(
                gettext("Invite members"),
                gettext("Enter an e-mail address and choose a role."),
                "console:members-invite",
                gettext("Invite"),
                page.next_cursor is not None,
            )
        )
    if actor.has_permission(Permission.WRITE_RETENTION):
        steps.append(
            SetupStep(
                gettext("Set retention"),
                gettext(
                    "Decide how long we keep usage records and other data. Save at least one "
                    "retention period."
                ),
                "console:retention",
                gettext("Retention"),
                has_own_period(actor=actor),
            )
        )
    return steps
