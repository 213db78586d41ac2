"""SCIM resources of users and groups, with the attributes that Caret stores.

Caret accepts other attributes of identity providers (telephone numbers, photographs, passwords),
but drops them, because it does not need them.
"""

import hashlib
from typing import Annotated, Any, Final

from pydantic import Field
from scim2_models import (
    URN,
    ComplexAttribute,
    GroupMembership,
    Mutability,
    Name,
    Reference,
    Required,
    Resource,
    ScimPolicy,
    Uniqueness,
)

# Accepts the requests of Entra ID and Okta, which deviate from the standard.
POLICY: Final = ScimPolicy(
    unknown=ScimPolicy.Unknown.ignore,
    # The value of a `remove` operation selects the entries to remove.
    remove_value_as_filter=ScimPolicy.RemoveValue.apply,
    # If no entry matches the filter in the path of an operation, the entry is created.
    unmatched_path_filter=ScimPolicy.UnmatchedPathFilter.create,
)


class Email(ComplexAttribute):
    value: str | None = None
    type: str | None = Field(None, examples=["work", "home", "other"])
    primary: bool | None = None


# /Schemas names resource types by their classes, so User and Group have SCIM's names. Importers
# call them ScimUserResource and ScimGroupResource.
class User(Resource[Any]):
    __schema__ = URN("urn:ietf:params:scim:schemas:core:2.0:User")

    user_name: Annotated[str | None, Uniqueness.server, Required.true] = None
    name: Name | None = None
    display_name: str | None = None
    active: bool | None = None
    emails: list[Email] | None = None
    groups: Annotated[list[GroupMembership] | None, Mutability.read_only] = None


class GroupMember(ComplexAttribute):
    value: Annotated[str | None, Mutability.immutable] = None
    ref: Annotated[Reference["User"] | None, Mutability.immutable] = Field(
        None, serialization_alias="$ref", validation_alias="$ref"
    )
    display: Annotated[str | None, Mutability.read_only] = None


class Group(Resource[Any]):
    __schema__ = URN("urn:ietf:params:scim:schemas:core:2.0:Group")

    display_name: Annotated[str | None, Uniqueness.server, Required.true] = None
    members: list[GroupMember] | None = None


def get_address(user: User) -> str:
    """Return the user's e-mail address in lower case; "": the resource contains none.

    This is the primary address, otherwise the first one, otherwise the userName if it is an
    address.
    """
    emails = [email for email in user.emails or [] if email.value]
    primary = next((email for email in emails if email.primary), emails[0] if emails else None)
    if primary is not None:
        return (primary.value or "").strip().lower()
    user_name = (user.user_name or "").strip().lower()
    return user_name if "@" in user_name else ""


def get_full_name(user: User) -> str:
    """Return the display name, otherwise the full name; "": the resource contains neither."""
    if user.display_name:
        return user.display_name.strip()
    name = user.name
    if name is None:
        return ""
    parts = [part for part in (name.given_name, name.family_name) if part]
    return (name.formatted or " ".join(parts)).strip()


def compute_etag(document: str) -> str:
    """Return the ETag of a resource from its JSON text, in which the members are sorted.

    The ETag is weak: responses with the same ETag may differ in the order of their JSON members.
    """
    return f'W/"{hashlib.sha256(document.encode()).hexdigest()[:16]}"'
