"""Legal holds and certificates of a company."""

from django.utils import timezone

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.models import DeletionCertificate
from tenants.privacy.retention.certificates import issue_certificate
from tenants.privacy.retention.operations import NewHold, place_hold
from tests.fixtures.companies import Company


def make_hold(company: Company) -> str:
    # The hold starts now, so it covers no existing data.
    new = NewHold("matter", "letter", since=timezone.now())
    return str(place_hold(actor=company.administrator.actor, new=new, now=timezone.now()))


def make_certificate(company: Company) -> str:
    with tenant_scope(company.tenant_id):
        facts = {"data_class": "usage_records", "method": "row deletion"}
        number = issue_certificate(tenant_id=company.tenant_id, facts=facts, now=timezone.now())
        row = DeletionCertificate.objects.get(tenant_id=company.tenant_id, number=number)
        return str(row.id)
