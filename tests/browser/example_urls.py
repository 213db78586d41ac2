"""An example URL for each page with arguments, for an existing object or a new one."""

import secrets
from collections.abc import Callable
from datetime import UTC, datetime

from django.conf import settings
from django.utils import timezone

from console.layout.pending_form import PendingForm, store_pending_form
from tenants.base.permissions import Role
from tenants.compliance.audit_sinks.operations import NewSink, create_sink
from tenants.compliance.audit_sinks.queries import list_sinks
from tenants.compliance.exports.jobs.operations import ExportRequest, request_export
from tenants.compliance.exports.jobs.queries import list_exports
from tenants.compliance.exports.rows import Period
from tenants.fleet.evaluations import store_evaluation
from tenants.identity.domains.operations import claim_domain
from tenants.identity.invitations.queries import read_page_of_invitations
from tenants.identity.own_keys.device_requests import create_device_request, generate_user_code
from tenants.identity.passwords.reset_links import ResetLink
from tenants.identity.scim.tokens import create_scim_token
from tenants.identity.sign_up import SignUpRequest, create_sign_up_link
from tenants.identity.teams.operations import create_team
from tenants.models import User
from tenants.policy.data_classes import DataClass
from tenants.policy.queries import get_policy
from tenants.privacy.retention.queries import list_certificates, list_holds
from tenants.security.authorization.actor import Actor
from tests.browser.sample_data import Scene
from tests.fakes.billing import ensure_invoice, make_users_budget
from tests.fakes.evaluation import make_report_file
from tests.fakes.retention import make_certificate, make_hold
from tests.fixtures.companies import make_completion, make_key
from tests.fixtures.users import Mailbox, make_scim_group, send_invitation

Example = Callable[[Scene], str]


def with_suffix(example: Example, suffix: str) -> Example:
    return lambda scene: f"{example(scene)}/{suffix}"


def invitation(scene: Scene) -> str:
    """Return the link of an invitation e-mail."""
    mailbox = Mailbox()
    send_invitation(scene.company, f"{secrets.token_hex(4)}@guest.example", mailbox=mailbox)
    return f"/invitation/{mailbox.last_token}"


def reset_link(scene: Scene) -> str:
    """Return the link of an e-mail for a forgotten password."""
    user = User.objects.get(id=scene.company.developer.user_id)
    return ResetLink.for_user(user).url.removeprefix(settings.CONSOLE_URL)


def sign_up_link(scene: Scene) -> str:
    """Return the link of an e-mail to sign up."""
    sign_up_request = SignUpRequest("Hooli", f"hooli-{secrets.token_hex(4)}", "gavin@hooli.example")
    return create_sign_up_link(sign_up_request).removeprefix(settings.CONSOLE_URL)


def key(scene: Scene) -> str:
    created = make_key(scene.company, scene.company.developer)
    return f"/keys/{created.key.lookup_id}"


def device_request(scene: Scene) -> str:
    """Return the URL of the page on which a user confirms the sign-in of an editor."""
    code = generate_user_code()
    create_device_request(
        device_code=secrets.token_urlsafe(),
        user_code=code,
        editor="Visual Studio Code 1.107",
        machine="ada-laptop",
        address="192.0.2.7",
        now=timezone.now(),
    )
    return f"/device?code={code}"


def policy_version(scene: Scene) -> str:
    return f"/policies/versions/{get_policy(actor=_owner(scene)).version}"


def policy_version_to_restore(scene: Scene) -> str:
    return f"/policies/review?from={get_policy(actor=_owner(scene)).version}"


def policy_override(scene: Scene) -> str:
    return f"/policies/overrides/user/{scene.company.developer.user_id}"


def export(scene: Scene) -> str:
    exports = list_exports(actor=_owner(scene), limit=1, cursor=None).rows
    october = Period(datetime(2026, 10, 1, tzinfo=UTC), datetime(2026, 11, 1, tzinfo=UTC))
    export_request = ExportRequest("members", "csv", october)
    export = (
        exports[0]
        if exports
        else request_export(actor=_owner(scene), export_request=export_request, now=timezone.now())
    )
    return f"/exports/{export.id}"


def invoice(scene: Scene) -> str:
    return f"/billing/invoices/{ensure_invoice(scene.company)}"


def budget(scene: Scene) -> str:
    return f"/budgets/{make_users_budget(scene.company).id}"


def sink(scene: Scene) -> str:
    sinks = list_sinks(actor=_owner(scene), limit=1, cursor=None).rows
    if sinks:
        return f"/audit-sinks/{sinks[0].id}"
    new = NewSink(name="Splunk", address="https://siem.example.com/hook", from_sequence=None)
    return f"/audit-sinks/{create_sink(actor=_owner(scene), new=new, now=timezone.now()).sink.id}"


def member(scene: Scene) -> str:
    return f"/members/{scene.company.developer.user_id}"


def team(scene: Scene) -> str:
    name = f"Team {secrets.token_hex(4)}"
    created = create_team(actor=scene.company.platform, name=name, now=timezone.now())
    return f"/teams/{created.id}"


def invitation_row(scene: Scene) -> str:
    """Return the URL of an invitation in the list of invitations, without an action."""
    email = f"{secrets.token_hex(4)}@guest.example"
    send_invitation(scene.company, email, mailbox=Mailbox())
    page = read_page_of_invitations(
        actor=scene.company.platform, limit=1, cursor=None, now=timezone.now()
    )
    return f"/members/invitations/{page.rows[0].id}"


def membership_of_team(scene: Scene) -> str:
    return f"{team(scene)}/members/{scene.company.developer.user_id}"


def group(scene: Scene) -> str:
    return f"/sign-in-settings/groups/{make_scim_group(scene.company)}"


def domain(scene: Scene) -> str:
    name = f"{secrets.token_hex(4)}.example"
    claimed = claim_domain(actor=scene.company.platform, name=name, now=timezone.now())
    return f"/sign-in-settings/domains/{claimed.id}"


def scim_token(scene: Scene) -> str:
    created = create_scim_token(actor=scene.company.platform, name="Okta", now=timezone.now())
    return f"/sign-in-settings/scim/{created.token.id}"


def consent_to_withdraw(scene: Scene) -> str:
    return "/account/my-data/consent/content_capture/withdraw"


def person(scene: Scene) -> str:
    return f"/privacy/data-subjects/{scene.company.developer.user_id}"


def data_class(scene: Scene) -> str:
    return f"/retention/classes/{DataClass.USAGE}"


def hold(scene: Scene) -> str:
    holds = list_holds(actor=_owner(scene), limit=1, cursor=None).rows
    return f"/retention/holds/{holds[0].id if holds else make_hold(scene.company)}"


def certificate(scene: Scene) -> str:
    certificates = list_certificates(actor=_owner(scene), limit=1, cursor=None).rows
    certificate_id = certificates[0].id if certificates else make_certificate(scene.company)
    return f"/retention/certificates/{certificate_id}"


def passkey(scene: Scene) -> str:
    return f"/account/passkeys/{scene.passkey_id}"


def pending_form(scene: Scene) -> str:
    form = PendingForm("/sign-in-settings/scim", {"token_name": ["Okta"]})
    return f"/account/resume/{store_pending_form(_owner(scene), form)}"


def saml(scene: Scene) -> str:
    return f"/sign-in/saml/{scene.company.tenant_id}"


def request(scene: Scene) -> str:
    return f"/usage/requests/{make_completion(scene.company, scene.company.developer)}"


def operators_tenant(scene: Scene) -> str:
    return f"/operators/tenants/{scene.company.tenant_id}"


def operators_change(scene: Scene) -> str:
    return f"{operators_tenant(scene)}/edit/status"


def operators_reason(scene: Scene) -> str:
    return f"{operators_tenant(scene)}/reason"


def operators_evaluation(scene: Scene) -> str:
    evaluation = store_evaluation(report=make_report_file(), title=None, now=timezone.now())
    return f"/operators/evaluations/{evaluation.id}"


def _owner(scene: Scene) -> Actor:
    return scene.company.people[Role.OWNER].actor
