"""The onboarding steps of a user, and whether each is done.

The user's permissions decide which steps there are.
"""

from dataclasses import dataclass
from typing import Final

from django.utils.translation import gettext

from tenants.base.permissions import Permission
from tenants.identity.own_keys.operations import find_own_key_terms
from tenants.identity.setup_progress import SetupProgress, read_setup_progress
from tenants.security.authorization.actor import Actor

# Users with none of these permissions have no steps.
_PERMISSIONS: Final = (
    Permission.USE_PLAYGROUND,
    Permission.WRITE_MEMBERS,
    Permission.WRITE_RETENTION,
)


@dataclass(frozen=True, slots=True)
class SetupStep:
    title: str
    text: str
    url_name: str  # of the page where users complete the step; "": there is no button
    button: str  # label
    is_done: bool


def build_onboarding_steps(actor: Actor) -> list[SetupStep]:
    """Return the steps in their order. Makes at most two queries."""
    if not any(actor.has_permission(permission) for permission in _PERMISSIONS):
        return []
    progress = read_setup_progress(actor=actor)
    return [*_build_completion_steps(actor, progress), *_build_tenant_steps(actor, progress)]


def _build_completion_steps(actor: Actor, progress: SetupProgress) -> list[SetupStep]:
    if not actor.has_permission(Permission.USE_PLAYGROUND):
        return []
    may_create = find_own_key_terms(actor=actor).is_allowed
    return [
        SetupStep(
            gettext("Create a key"),
            gettext("The key is shown only once, together with the settings for your editor.")
            if may_create
            else gettext("Ask an administrator to create a key for you."),
            "console:my-keys-new" if may_create else "",
            gettext("New key"),
            progress.has_key,
        ),
        SetupStep(
            gettext("Try the playground"),
            gettext(
                "An editor in your browser with real completions. Its key is valid for an hour."
            ),
            "console:playground",
            gettext("Open the playground"),
            progress.has_started_playground,
        ),
        SetupStep(
            gettext("Get a completion in your editor"),
            gettext(
                "Install Caret's extension, or set up another plugin. This step is complete after "
                "the first use of a key."
            ),
            "console:editors",
            gettext("Editors"),
            progress.has_used_key,
        ),
    ]


def _build_tenant_steps(actor: Actor, progress: SetupProgress) -> list[SetupStep]:
    steps = []
    if actor.has_permission(Permission.WRITE_MEMBERS):
        steps.append(
            SetupStep(
                gettext("Invite members"),
                gettext("Enter an e-mail address and choose a role."),
                "console:members-invite",
                gettext("Invite"),
                progress.has_other_members,
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
                progress.has_retention_period,
            )
        )
    return steps
