"""Policy overrides for a user, made with the pages' forms."""

from typing import Any

from django.test import Client

from tests.fixtures.companies import Person
from tests.integration.console.pages.forms import parse_form, post_form


def override_path(person: Person) -> str:
    return f"/policies/overrides/user/{person.user_id}"


def save_override(client: Client, person: Person, **changes: Any) -> Any:
    """Change the user's override, review the draft and save it."""
    path = override_path(person)
    fields = parse_form(client.get(path).content.decode())
    draft = parse_form(post_form(client, path, **(fields | changes)).content.decode())
    return post_form(client, f"{path}/review", **(draft | {"reason": "Contractor"}))
