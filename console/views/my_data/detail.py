"""The page "Your data": the user's consent, its receipts, and the download of the user's data."""

from dataclasses import dataclass
from typing import Any, Final

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from console.api.data_subjects import BUNDLE_LIMITS
from console.layout.htmx import render_page
from console.layout.lists.list_page import ListPage
from console.layout.lists.pagination import wants_csv
from console.layout.toasts import toast
from console.sign_in.current_member import CurrentMember, member_required
from console.texts.error_messages import translate_error
from console.views.privacy.data_subjects import download_bundle
from console.views.privacy.presenters import RECEIPTS_FILE
from tenants.base.errors import Conflict, InvalidValue
from tenants.base.permissions import Permission
from tenants.compliance.data_subjects.export_bundle import BundleRequest, require_own_user_id
from tenants.privacy.consent.consent import UserConsent
from tenants.privacy.consent.consent_texts import (
    USER_CONSENT_VERSIONS,
    ConsentKind,
    ConsentText,
    get_consent_text,
)
from tenants.privacy.consent.queries import OwnConsent, get_own_consent, list_receipts
from tenants.privacy.consent_lifecycle import ConsentChoice, set_consent

# The page shows this list below the questions about consent.
_RECEIPTS: Final = ListPage(
    template="console/my_data/detail.html",
    query=lambda list_query: list_receipts(
        actor=list_query.actor, limit=list_query.limit, cursor=list_query.cursor, only_own=True
    ),
    page_rows=10,
    csv=RECEIPTS_FILE,
)
TITLES: Final[dict[ConsentKind, Promise]] = {
    ConsentKind.CONTENT_CAPTURE: _("Content capture"),
    ConsentKind.TRAINING: _("Model training"),
}


@dataclass(frozen=True, slots=True)
class ConsentQuestion:
    """A kind of consent, with the text to consent to and the user's present answer."""

    kind: ConsentKind
    title: str
    consent_text: ConsentText
    is_granted: bool
    is_allowed: bool  # the tenant allows its users to consent
    # True only for training: it requires consent to content capture, which the user has not given.
    is_content_capture_missing: bool
    retention_days: int | None  # only for content capture; None: another kind, or nothing is stored


@require_GET
@member_required
def show_own_data(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    actor = member.actor
    if wants_csv(request):
        return _RECEIPTS.file(request, member)
    context: dict[str, Any] = {
        "may_download": actor.has_permission(Permission.EXPORT_OR_ERASE_OWN_DATA),
        "reads_policy": actor.has_permission(Permission.READ_POLICY),
        "can_consent": actor.has_permission(Permission.MANAGE_OWN_CONSENT),
    }
    if actor.has_permission(Permission.MANAGE_OWN_CONSENT):
        consent = get_own_consent(actor=actor)
        context |= _RECEIPTS.page_context(request, member)
        context["questions"] = _consent_questions(consent)
    return render_page(request, member, "console/my_data/detail.html", context)


@require_POST
@member_required
def agree(request: HttpRequest, member: CurrentMember, kind: str) -> HttpResponse:
    """Give consent.

    The form contains the versions of the consent texts that the page showed (`wording`).
    """
    consent_kind = _read_kind(kind)
    current_consent = get_own_consent(actor=member.actor).consent
    is_training = consent_kind is ConsentKind.TRAINING
    # The user keeps the consent that they have given, and adds this kind.
    new_consent = UserConsent(
        content_capture=current_consent.content_capture or not is_training,
        training=current_consent.training or is_training,
    )
    consent_texts = frozenset(request.POST.getlist("wording"))
    if not request.POST.get("agrees"):
        messages.error(request, gettext("To consent, select the checkbox first."))
        return redirect("console:own")
    try:
        set_consent(
            actor=member.actor, choice=ConsentChoice(new_consent, consent_texts), now=timezone.now()
        )
    except (Conflict, InvalidValue) as error:
        messages.error(request, translate_error(error))
    else:
        toast(request, gettext("Consent given. We stored a receipt. You can withdraw at any time."))
    return redirect("console:own")


@require_http_methods(["GET", "POST"])
@member_required
def withdraw(request: HttpRequest, member: CurrentMember, kind: str) -> HttpResponse:
    """Withdraw consent after one confirmation (POST).

    There is no other step, because withdrawing must be as easy as giving consent (GDPR, Article
    7(3)). Withdrawing consent to content capture also withdraws consent to training, which requires
    it.
    """
    consent_kind = _read_kind(kind)
    current_consent = get_own_consent(actor=member.actor).consent
    if request.method == "GET":
        context = {
            "kind": consent_kind,
            "title": TITLES[consent_kind],
            "is_granted": current_consent.is_granted(consent_kind),
        }
        return render_page(request, member, "console/my_data/withdraw.html", context)
    keeps_content_capture = current_consent.content_capture and consent_kind is ConsentKind.TRAINING
    # Only a yes to the current text counts as consent, so the user has agreed to this version.
    consent_texts = frozenset({USER_CONSENT_VERSIONS[ConsentKind.CONTENT_CAPTURE]})
    choice = ConsentChoice(
        UserConsent(content_capture=keeps_content_capture, training=False),
        consent_texts if keeps_content_capture else frozenset(),
    )
    set_consent(actor=member.actor, choice=choice, now=timezone.now())
    toast(request, _withdrawal_message(consent_kind))
    return redirect("console:own")


@require_POST
@member_required
def download_own_bundle(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    bundle_request = BundleRequest(
        require_own_user_id(member.actor), reason="", limits=BUNDLE_LIMITS
    )
    # Without a bundle, the page shows why.
    return download_bundle(request, member, bundle_request) or redirect("console:own")


def _consent_questions(consent: OwnConsent) -> list[ConsentQuestion]:
    return [
        ConsentQuestion(
            kind=kind,
            title=str(TITLES[kind]),
            consent_text=get_consent_text(version),
            is_granted=consent.consent.is_granted(kind),
            is_allowed=consent.allowance.is_granted(kind),
            is_content_capture_missing=kind is ConsentKind.TRAINING
            and not consent.consent.content_capture,
            retention_days=consent.retention_days if kind is ConsentKind.CONTENT_CAPTURE else None,
        )
        for kind, version in USER_CONSENT_VERSIONS.items()
    ]


def _read_kind(text: str) -> ConsentKind:
    try:
        return ConsentKind(text)
    except ValueError as error:
        raise Http404 from error


def _withdrawal_message(kind: ConsentKind) -> str:
    if kind is ConsentKind.TRAINING:
        return gettext("Consent withdrawn. New training data sets do not contain your content.")
    return gettext(
        "Consent withdrawn. Your captured content is unreadable now and is deleted within minutes."
    )
