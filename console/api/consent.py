"""Consent over REST: the caller's own consent, and consent receipts."""

from datetime import datetime
from typing import Annotated, Final
from uuid import UUID

from django.utils import timezone
from ninja import Query, Router
from pydantic import Field

from console.api.authentication import AuthenticatedRequest, actor_of, document_permissions
from console.api.base_schema import RequestSchema, ResponseSchema
from console.api.pagination import Items, PageQuery, PageResponse
from tenants.base.pagination import Page
from tenants.base.permissions import Permission
from tenants.privacy.consent.consent import UserConsent
from tenants.privacy.consent.consent_texts import (
    USER_CONSENT_VERSIONS,
    ConsentKind,
    get_consent_text,
)
from tenants.privacy.consent.queries import (
    ConsentReceiptView,
    OwnConsent,
    get_own_consent,
    list_receipts,
)
from tenants.privacy.consent_lifecycle import ConsentChoice, set_consent, withdraw_consent

router = Router(tags=["consent"])

_EXAMPLE: Final = {"content_capture": False, "training": False, "consent_texts": []}


class ConsentResponse(ResponseSchema):
    content_capture: bool
    training: bool


class ConsentTextResponse(ResponseSchema):
    kind: ConsentKind
    version: str  # name of this version of the text
    text: str
    sha256: str  # of the text, in hex


class OwnConsentResponse(ResponseSchema):
    allowance: ConsentResponse  # the consent that the tenant's policy allows
    consent: ConsentResponse  # your own, as far as the policy allows it
    retention_days: int | None  # of captured content; null: the policy allows no content capture
    consent_texts: list[ConsentTextResponse]  # the current consent texts


class SetConsent(RequestSchema, json_schema_extra={"example": _EXAMPLE}):
    content_capture: bool
    training: bool = False
    # Versions of the consent texts that the user has read: one for each consent that is given.
    consent_texts: list[Annotated[str, Field(max_length=40)]] = Field(default=[], max_length=10)


class ConsentReceiptResponse(ResponseSchema):
    id: UUID
    user_email: str | None  # null: the tenant's own consent, or an erased user
    kind: ConsentKind
    is_granted: bool
    wording: str  # version of the consent text
    wording_sha256: str  # of the consent text, in hex
    actor_email: str | None  # null: the actor is not a user, or was erased
    policy_version: int | None  # null: not caused by a policy
    address: str | None  # IP address; null: not a network request
    created_at: datetime


class ReceiptList(PageResponse):
    items: Items[ConsentReceiptResponse]  # newest first


@router.get(
    "",
    response=OwnConsentResponse,
    summary="Get your own consent and the current consent texts.",
    openapi_extra=document_permissions(Permission.MANAGE_OWN_CONSENT),
)
def get(request: AuthenticatedRequest) -> OwnConsentResponse:
    return _to_response(get_own_consent(actor=actor_of(request)))


@router.put(
    "",
    response=OwnConsentResponse,
    summary="Set your own consent to content capture and to training.",
    openapi_extra=document_permissions(Permission.MANAGE_OWN_CONSENT),
)
def put(request: AuthenticatedRequest, body: SetConsent) -> OwnConsentResponse:
    choice = ConsentChoice(
        UserConsent(body.content_capture, body.training), frozenset(body.consent_texts)
    )
    return _to_response(set_consent(actor=actor_of(request), choice=choice, now=timezone.now()))


@router.delete(
    "",
    response=OwnConsentResponse,
    summary="Withdraw all of your own consent; your captured content is erased.",
    openapi_extra=document_permissions(Permission.MANAGE_OWN_CONSENT),
)
def delete(request: AuthenticatedRequest) -> OwnConsentResponse:
    return _to_response(withdraw_consent(actor=actor_of(request), now=timezone.now()))


@router.get(
    "/receipts",
    response=ReceiptList,
    summary="List consent receipts: the tenant's, or only your own.",
    openapi_extra=document_permissions(Permission.READ_CONSENT, Permission.MANAGE_OWN_CONSENT),
)
def receipts(request: AuthenticatedRequest, page: Query[PageQuery]) -> Page[ConsentReceiptView]:
    return list_receipts(actor=actor_of(request), limit=page.limit, cursor=page.cursor)


def _to_response(own: OwnConsent) -> OwnConsentResponse:
    return OwnConsentResponse(
        allowance=ConsentResponse.model_validate(own.allowance),
        consent=ConsentResponse.model_validate(own.consent),
        retention_days=own.retention_days,
        consent_texts=[
            _consent_text(kind, version) for kind, version in USER_CONSENT_VERSIONS.items()
        ],
    )


def _consent_text(kind: ConsentKind, version: str) -> ConsentTextResponse:
    consent_text = get_consent_text(version)
    return ConsentTextResponse(
        kind=kind, version=version, text=consent_text.text, sha256=consent_text.sha256
    )
