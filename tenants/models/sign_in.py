"""Sign-in to a tenant: its e-mail domains and its identity provider."""

import uuid
from typing import ClassVar

from django.db import models

from caret.foundation.postgres.row_security import Grants, RowSecurity
from tenants.models.tenant import Tenant


class Domain(models.Model):
    """An e-mail domain that a tenant claims. Several tenants may claim the same domain."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    id = models.UUIDField(default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=253)  # lower case, IDNA
    # To prove control of the domain, the tenant adds a TXT record that contains
    # "caret-domain-verification=" (tenants.base.validation.email_domains.TXT_PREFIX) and this text.
    challenge = models.CharField(max_length=80)
    created_at = models.DateTimeField()
    verified_at = models.DateTimeField(null=True)  # None: claimed but not verified

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "name"], name="domain_name"),
            RowSecurity(name="domain_tenant"),
        ]

    def __str__(self) -> str:
        return self.name


class VerifiedDomain(models.Model):
    """The tenant that has verified a domain. The primary key allows only one tenant per domain."""

    name = models.CharField(primary_key=True, max_length=253)
    holder = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")

    class Meta:
        db_table = "tenants_verified_domain"
        # "captured_domain" is an earlier name of the table. A new name would need a migration.
        constraints: ClassVar = [
            Grants(
                name="captured_domain_grants",
                reason="finds the tenant of an e-mail address at sign-in, before it is known",
                privileges=("SELECT", "INSERT", "DELETE"),
            )
        ]

    def __str__(self) -> str:
        return self.name


class SignInProtocol(models.TextChoices):
    OIDC = "oidc"
    SAML = "saml"


class IdentityProvider(models.Model):
    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    id = models.UUIDField(default=uuid.uuid4, editable=False)
    protocol = models.CharField(
        max_length=4, choices=SignInProtocol, db_default=SignInProtocol.OIDC
    )
    issuer = models.CharField(max_length=500)  # OIDC: https://...; SAML: the entity ID
    client_id = models.CharField(max_length=200)  # OIDC; SAML: ""
    # OIDC: the client secret, sealed with tenants.identity.sso.queries.derive_provider_key; SAML:
    # empty.
    sealed_secret = models.BinaryField()
    sso_url = models.CharField(max_length=500, db_default="")  # SAML: the sign-in URL; OIDC: ""
    # SAML: signing certificates as DER in base64, one a line; OIDC: "".
    certificates = models.TextField(db_default="")
    created_at = models.DateTimeField()

    class Meta:
        db_table = "tenants_identity_provider"
        constraints: ClassVar = [
            # One per tenant: with two, a user could have two accounts.
            models.UniqueConstraint(fields=["tenant"], name="identity_provider_tenant"),
            RowSecurity(name="identity_provider_security"),
        ]

    def __str__(self) -> str:
        return self.issuer
