"""An editor that signs in by the device flow, and the member who confirms it."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

import pytest
from django.utils import timezone

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.identity.own_keys.device_requests import INTERVAL_S
from tenants.models import ApiKey
from tenants.policy.document import serialize_policy
from tenants.policy.operations import set_policy
from tenants.policy.queries import find_policy_in_force
from tests.fakes.console_client import Client
from tests.fixtures.companies import Company

DEVICE_CODE_GRANT: Final = "urn:ietf:params:oauth:grant-type:device_code"
FORM_TYPE: Final = "application/x-www-form-urlencoded"
START_FIELDS: Final = {"client_id": "caret-ls", "editor": "Neovim 0.11", "machine": "ada-laptop"}


@dataclass
class Editor:
    """An editor that signs in. It waits by moving the clock."""

    monkeypatch: pytest.MonkeyPatch
    address: str  # its IP address
    codes: dict[str, Any] = field(default_factory=dict)  # the response to `start`
    now: datetime = field(default_factory=timezone.now)

    @property
    def user_code(self) -> str:
        return str(self.codes["user_code"])

    def start(self, **fields: str) -> dict[str, Any]:
        """Request the codes of a sign-in, and return them."""
        self.wait(timedelta(0))  # stops the clock
        response = self.post("/oauth/device_authorization", START_FIELDS | fields)
        assert response.status_code == 200, response.content
        self.codes = response.json()
        return self.codes

    def poll(self, *, waits_s: float = INTERVAL_S, **fields: str) -> dict[str, Any]:
        """Wait, request the key once, and return the content of the response."""
        self.wait(timedelta(seconds=waits_s))
        parameters = {"grant_type": DEVICE_CODE_GRANT, "client_id": "caret-ls"}
        parameters["device_code"] = self.codes.get("device_code", "")
        response = self.post("/oauth/token", parameters | fields)
        content: dict[str, Any] = response.json()
        assert response.status_code == (200 if "access_token" in content else 400)
        assert response["Cache-Control"] == "no-store"
        return content

    def wait(self, duration: timedelta) -> None:
        """Move the clock of the whole process, instead of sleeping."""
        self.now += duration
        self.monkeypatch.setattr("django.utils.timezone.now", lambda: self.now)

    def post(self, path: str, fields: dict[str, str]) -> Any:
        return self.send(path, urlencode(fields))

    def send(
        self, path: str, body: str | bytes, content_type: str = FORM_TYPE, **headers: str
    ) -> Any:
        client = Client(REMOTE_ADDR=self.address)
        return client.generic("POST", path, body, content_type=content_type, headers=headers)


def open_page(client: Client, code: str) -> Any:
    return client.get("/device", {"code": code})


def post_decision(client: Client, company: Company, code: str, decision: str = "confirm") -> Any:
    """Open the page, which binds a free code to the user. Then post the decision."""
    open_page(client, code)
    form = {"code": code, "tenant": company.tenant_id, "decision": decision}
    return client.post("/device", form)


def keys_of(company: Company) -> list[ApiKey]:
    with tenant_scope(company.tenant_id):
        return list(ApiKey.objects.filter(tenant_id=company.tenant_id).order_by("created_at"))


def change_policy(company: Company, **changes: Any) -> None:
    current_policy = find_policy_in_force(tenant_id=company.tenant_id).policy
    set_policy(
        actor=company.platform,
        document=serialize_policy(current_policy) | changes,
        reason="a test",
        now=timezone.now(),
    )
