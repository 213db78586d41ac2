"""The actions that claim an e-mail domain, verify it by DNS, and release it."""

import uuid

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_POST

from caret.foundation.concurrency.bulkhead import BulkheadFull
from console.layout.htmx import render_page
from console.layout.permission_required import permission_required
from console.layout.step_up import step_up_required
from console.layout.toasts import toast
from console.limits.outbound_limit import OUTBOUND_LIMIT
from console.sign_in.current_member import CurrentMember, member_required
from console.sign_in.sessions.session_exemption import exempt_session
from console.texts.error_messages import translate_error
from console.views.sign_in_settings.presenters import DomainForm, render_settings_page
from tenants.base.errors import Conflict, InvalidValue
from tenants.base.permissions import Permission
from tenants.identity.domains.dns_lookup import look_up_txt_records
from tenants.identity.domains.operations import claim_domain, release_domain, verify_domain
from tenants.identity.domains.queries import find_domain


@require_POST
@member_required
@permission_required(Permission.WRITE_SIGN_IN_SETTINGS)
def claim(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    form = DomainForm(request.POST)
    if not form.is_valid():
        return render_settings_page(request, member, status=400, domain_form=form)
    try:
        domain = claim_domain(
            actor=member.actor, name=form.cleaned_data["domain"], now=timezone.now()
        )
    except (Conflict, InvalidValue) as error:
        form.add_error("domain", translate_error(error))
        return render_settings_page(request, member, status=400, domain_form=form)
    text = gettext("%(name)s added. Add its TXT record to your DNS, then verify the domain.")
    toast(request, text % {"name": domain.name})
    return redirect("console:access")


@require_POST
@member_required
@permission_required(Permission.WRITE_SIGN_IN_SETTINGS)
@step_up_required
def verify(request: HttpRequest, member: CurrentMember, domain_id: uuid.UUID) -> HttpResponse:
    """Verify the domain by its TXT record.

    If the tenant has an identity provider, the sessions of the domain's users end, because these
    users must now sign in at the provider. The session of this request continues
    (`exempt_session`).
    """
    actor = member.actor
    try:
        with (
            OUTBOUND_LIMIT.acquire(actor.tenant_id),
            exempt_session(request, actor.tenant_id, member.email) as session_key,
        ):
            domain = verify_domain(
                actor=actor,
                domain_id=domain_id,
                resolve=look_up_txt_records,
                now=timezone.now(),
                exempt_session_key=session_key,
            )
    except Conflict as error:
        messages.error(request, translate_error(error))
    except BulkheadFull:
        messages.error(
            request, gettext("Too many outgoing requests right now. Try again in a moment.")
        )
    else:
        toast(request, gettext("%(name)s verified.") % {"name": domain.name})
    return redirect("console:access")


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.WRITE_SIGN_IN_SETTINGS)
@step_up_required
def release(request: HttpRequest, member: CurrentMember, domain_id: uuid.UUID) -> HttpResponse:
    """Ask for a confirmation (GET), or release the domain (POST).

    The release may end the sessions of the domain's users, but not the session of this request.
    """
    domain = find_domain(actor=member.actor, domain_id=domain_id)
    if request.method == "GET":
        return render_page(
            request, member, "console/sign_in_settings/release_domain.html", {"domain": domain}
        )
    with exempt_session(request, member.actor.tenant_id, member.email) as session_key:
        release_domain(
            actor=member.actor,
            domain_id=domain_id,
            now=timezone.now(),
            exempt_session_key=session_key,
        )
    toast(request, gettext("%(name)s released.") % {"name": domain.name})
    return redirect("console:access")
