"""A policy that is about to be put in force. It travels with the pages, and is kept nowhere."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from caret.contracts.policy import TenantPolicy
from console.views.policies.form_fields import whole_number
from tenants.base.errors import InvalidValue, NotFound
from tenants.policy.document import read_policy, write_policy
from tenants.policy.queries import PolicyInForce, find_version
from tenants.policy.three_way_merge import MergeResult, merge_policies
from tenants.security.authorization.actor import Actor

# The page from which it comes, to which one goes back: URL names of pages that take a draft.
ORIGINS: Final = {
    "policies": "policies-edit",
    "exclusion": "exclusion",
    "privacy": "privacy-allowance",
}


@dataclass(frozen=True, slots=True)
class PolicyDraft:
    policy: TenantPolicy
    replaces: int  # the version from which it was made
    origin: str = "policies"  # of ORIGINS

    @property
    def document(self) -> str:
        return json.dumps(write_policy(self.policy))

    @property
    def edit_name(self) -> str:
        return f"console:{ORIGINS[self.origin]}"


@dataclass(frozen=True, slots=True)
class ConcurrentChange:
    """Somebody else has saved since."""

    seen: PolicyInForce  # from which the draft was made
    held: PolicyInForce
    merged: MergeResult


def read_draft(posted: Mapping[str, Any]) -> PolicyDraft:
    """Raises Invalid for what no page of ours has sent."""
    origin = str(posted.get("origin", "policies"))
    replaces = whole_number(str(posted.get("replaces", "")))
    if origin not in ORIGINS or not replaces:
        raise InvalidValue("replaces", "Fill in all fields.")
    return PolicyDraft(read_policy(read_json(str(posted.get("document", "")))), replaces, origin)


def read_json(text: str) -> object:
    """Raises Invalid."""
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidValue("document", "Fill in all fields.") from error
    return found


def find_meanwhile(
    actor: Actor, draft: PolicyDraft, held: PolicyInForce
) -> ConcurrentChange | None:
    """None: nobody has. Raises NotFound for a version that never was."""
    if draft.replaces == held.version:
        return None
    if draft.replaces > held.version:
        raise NotFound("This version does not exist.")
    seen = find_version(actor=actor, version=draft.replaces)
    merged = merge_policies(seen=seen.policy, wanted=draft.policy, held=held.policy)
    return ConcurrentChange(seen, held, merged)


def rebase_draft(draft: PolicyDraft, meanwhile: ConcurrentChange) -> PolicyDraft:
    return replace(draft, policy=meanwhile.merged.policy, replaces=meanwhile.held.version)
