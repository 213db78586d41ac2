"""A policy draft: a changed policy that is not saved yet.

The pages keep the draft in hidden form fields. The server stores it only during a step-up.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from caret.contracts.policy import TenantPolicy
from console.views.policies.form_fields import parse_whole_number
from tenants.base.errors import InvalidValue, NotFound
from tenants.policy.document import parse_policy, serialize_policy
from tenants.policy.queries import PolicyVersionView, find_version
from tenants.policy.three_way_merge import MergeResult, merge_policies
from tenants.security.authorization.actor import Actor

# The page where a draft starts -> the page that edits the draft, as URL names without `console:`.
ORIGINS: Final = {
    "policies": "policies-edit",
    "exclusion": "exclusion",
    "privacy": "privacy-content-capture",
}


@dataclass(frozen=True, slots=True)
class PolicyDraft:
    policy: TenantPolicy
    expected_version: int  # the version on which the draft is based
    origin: str = "policies"  # a key of ORIGINS

    @property
    def document(self) -> str:
        """The policy as a JSON text."""
        return json.dumps(serialize_policy(self.policy))

    @property
    def edit_url_name(self) -> str:
        return f"console:{ORIGINS[self.origin]}"


@dataclass(frozen=True, slots=True)
class ConcurrentChange:
    """A version that somebody saved after the draft was started."""

    base: PolicyVersionView  # the version on which the draft is based
    current: PolicyVersionView  # the new version
    merged: MergeResult  # the changes of the draft, applied to the new version


def read_draft(form_values: Mapping[str, Any]) -> PolicyDraft:
    """Return the draft of a submitted form. Raises InvalidValue."""
    origin = str(form_values.get("origin", "policies"))
    expected_version = parse_whole_number(str(form_values.get("expected_version", "")))
    if origin not in ORIGINS or not expected_version:
        raise InvalidValue("expected_version", "Fill in all fields.")
    return PolicyDraft(
        parse_policy(read_json(str(form_values.get("document", "")))), expected_version, origin
    )


def read_json(text: str) -> object:
    """Return the parsed JSON. Raises InvalidValue."""
    try:
        document: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidValue("document", "Fill in all fields.") from error
    return document


def find_concurrent_change(
    actor: Actor, draft: PolicyDraft, current: PolicyVersionView
) -> ConcurrentChange | None:
    """Return the concurrent change; None if the draft is based on the current version.

    Raises NotFound if the version on which the draft is based does not exist.
    """
    if draft.expected_version == current.version:
        return None
    if draft.expected_version > current.version:
        raise NotFound("This version does not exist.")
    base = find_version(actor=actor, version=draft.expected_version)
    merged = merge_policies(base=base.policy, proposed=draft.policy, current=current.policy)
    return ConcurrentChange(base, current, merged)


def rebase_draft(draft: PolicyDraft, concurrent_change: ConcurrentChange) -> PolicyDraft:
    """Return the draft with its changes applied to the current version."""
    merged, current = concurrent_change.merged.policy, concurrent_change.current
    return replace(draft, policy=merged, expected_version=current.version)
