"""An identity provider's SCIM client."""

import json
from dataclasses import dataclass
from typing import Any

from django.test import Client

from tests.fixtures.companies import Company
from tests.fixtures.users import make_scim_token

PATCH_SCHEMA = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
USER = "urn:ietf:params:scim:schemas:core:2.0:User"
GROUP = "urn:ietf:params:scim:schemas:core:2.0:Group"


@dataclass(frozen=True, slots=True)
class Provider:
    bearer_token: str

    def request(self, method: str, path: str, body: object = None, **headers: str) -> Any:
        return Client().generic(
            method,
            f"/scim/v2/{path}",
            "" if body is None else json.dumps(body),
            content_type="application/scim+json",
            headers={"Authorization": f"Bearer {self.bearer_token}", **headers},
        )

    def create_user(self, email: str, **fields: object) -> Any:
        body = {"schemas": [USER], "userName": email, "active": True, **fields}
        response = self.request("POST", "Users", body)
        assert response.status_code == 201, response.content
        return response.json()

    def create_group(self, name: str, *user_ids: str) -> Any:
        members = [{"value": user_id} for user_id in user_ids]
        body = {"schemas": [GROUP], "displayName": name, "members": members}
        response = self.request("POST", "Groups", body)
        assert response.status_code == 201, response.content
        return response.json()

    def patch(self, path: str, *operations: object, **headers: str) -> Any:
        return self.request(
            "PATCH", path, {"schemas": [PATCH_SCHEMA], "Operations": list(operations)}, **headers
        )


def make_provider(company: Company) -> Provider:
    """Return a provider with a new SCIM token of the company."""
    _, token = make_scim_token(company)
    return Provider(token)
