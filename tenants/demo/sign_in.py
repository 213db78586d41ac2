"""Sign-in settings and audit sinks: domains, identity providers, SCIM tokens, SIEMs.

Users with an e-mail address in a verified domain must sign in with the identity provider, which
does not exist here. No demo user has such an address, so all of them can sign in with passwords.
"""

import base64
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import NotFound
from tenants.base.permissions import Role
from tenants.compliance.audit_sinks.backoff import MAX_WAIT
from tenants.compliance.audit_sinks.delivery import UNKNOWN_HOST
from tenants.compliance.audit_sinks.operations import NewSink, create_sink
from tenants.demo.members import DemoCompany
from tenants.demo.traffic.timeline import DemoTimeline, TimelineEvent
from tenants.identity.domains.operations import claim_domain, verify_domain
from tenants.identity.scim.tokens import create_scim_token, revoke_scim_token
from tenants.identity.sso.operations import (
    OidcProviderConfig,
    SamlProviderConfig,
    set_provider,
    set_saml_provider,
)
from tenants.models import AuditSink
from tenants.security.audit.queries import find_head

_SAML_SLUGS: Final = frozenset({"globex"})  # these tenants use SAML; others use OpenID Connect
_SAML_METADATA: Final = """\
<EntityDescriptor xmlns="urn:oasis:names:tc:SAML:2.0:metadata" entityID="https://{host}/entity">
<IDPSSODescriptor protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol">
<KeyDescriptor use="signing"><KeyInfo xmlns="http://www.w3.org/2000/09/xmldsig#"><X509Data>
<X509Certificate>{certificate}</X509Certificate></X509Data></KeyInfo></KeyDescriptor>
<SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect"
 Location="https://{host}/saml"/></IDPSSODescriptor></EntityDescriptor>"""
_HEALTHY, _FAILING = "Security operations", "Change board"  # names of sinks
_NUM_FAILURES: Final = 41  # failed deliveries in a row; an example
_CERTIFICATE_LIFETIME: Final = timedelta(days=5 * 365)


def plan_sign_in_settings(company: DemoCompany) -> list[TimelineEvent]:
    timeline = company.timeline
    return [
        TimelineEvent(timeline.moment_at(0.05, hour=9), lambda now: _claim_domains(company, now)),
        TimelineEvent(timeline.moment_at(0.06, hour=10), lambda now: _set_provider(company, now)),
        TimelineEvent(
            timeline.moment_at(0.08, hour=9), lambda now: _create_scim_tokens(company, now)
        ),
        TimelineEvent(timeline.moment_at(0.12, hour=9), lambda now: _create_sinks(company, now)),
    ]


def set_sink_states(timeline: DemoTimeline) -> None:
    """Let one sink look up to date, and the other one look as if deliveries failed for two days.

    The next delivery is due in an hour. It fails because the servers of the sinks do not exist.
    """
    with tenant_scope(timeline.tenant_id):
        last_sequence = find_head(tenant_id=timeline.tenant_id).sequence
        sinks = AuditSink.objects.filter(tenant_id=timeline.tenant_id)
        sinks.filter(name=_HEALTHY).update(
            delivered_sequence=last_sequence,
            delivered_at=timeline.now,
            next_attempt_at=timeline.now + MAX_WAIT,
        )
        sinks.filter(name=_FAILING).update(
            delivered_sequence=last_sequence // 2,
            delivered_at=timeline.now - timedelta(days=2),
            failed_since=timeline.now - timedelta(days=2) + timedelta(minutes=1),
            last_error=UNKNOWN_HOST,
            num_failures=_NUM_FAILURES,
            next_attempt_at=timeline.now + MAX_WAIT,
        )


def _claim_domains(company: DemoCompany, now: datetime) -> None:
    """Claim two domains: one that is verified, and one that stays unverified."""
    owner, slug = company.find_actor(Role.OWNER), company.timeline.slug
    verified = claim_domain(actor=owner, name=f"people.{slug}.example", now=now)
    verify_domain(
        actor=owner,
        domain_id=verified.id,
        resolve=lambda _: [verified.txt_record],  # as if DNS had the record
        now=now + timedelta(minutes=40),
    )
    claim_domain(actor=owner, name=f"labs.{slug}.example", now=now + timedelta(hours=1))


def _set_provider(company: DemoCompany, now: datetime) -> None:
    owner, host = company.find_actor(Role.OWNER), f"login.{company.timeline.slug}.example"
    if company.timeline.slug in _SAML_SLUGS:
        metadata = _SAML_METADATA.format(host=host, certificate=_make_certificate(host, now))
        set_saml_provider(
            actor=owner, config=SamlProviderConfig(metadata, None, _fetch_nothing), now=now
        )
    else:
        config = OidcProviderConfig(f"https://{host}/", "caret", "demo-client-secret")
        set_provider(actor=owner, new=config, now=now)


def _fetch_nothing(_: str) -> str:
    raise NotFound("Demo tenants do not load metadata from the network.")


def _make_certificate(host: str, now: datetime) -> str:
    """Return a self-signed certificate in base64-encoded DER, as SAML metadata contains it.

    Its private key is discarded, so that nobody can sign in with it.
    """
    private_key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).serial_number(1)
    builder = builder.not_valid_before(now).not_valid_after(now + _CERTIFICATE_LIFETIME)
    certificate = builder.public_key(private_key.public_key()).sign(private_key, hashes.SHA256())
    return base64.b64encode(certificate.public_bytes(serialization.Encoding.DER)).decode()


def _create_scim_tokens(company: DemoCompany, now: datetime) -> None:
    """Create a SCIM token that is revoked two hours later, and one that stays valid."""
    owner = company.find_actor(Role.OWNER)
    first_token = create_scim_token(actor=owner, name="A first try", now=now)
    two_hours_later = now + timedelta(hours=2)
    revoke_scim_token(actor=owner, token_id=first_token.token.id, now=two_hours_later)
    create_scim_token(actor=owner, name="Identity provider", now=two_hours_later)


def _create_sinks(company: DemoCompany, now: datetime) -> None:
    """Create two sinks. Nothing is delivered to them until an hour after the seeding began."""
    administrator, slug = company.find_actor(Role.ADMINISTRATOR), company.timeline.slug
    for name, address in (
        (_HEALTHY, f"syslog+tls://siem.{slug}.example:6514"),
        (_FAILING, f"https://changes.{slug}.example/caret"),
    ):
        create_sink(actor=administrator, new=NewSink(name, address, from_sequence=1), now=now)
    with tenant_scope(company.timeline.tenant_id):
        AuditSink.objects.filter(tenant_id=company.timeline.tenant_id).update(
            next_attempt_at=company.timeline.now + MAX_WAIT
        )
