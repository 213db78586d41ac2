"""Users, operators of the platform, and operators' keys. Memberships give users permissions."""

import uuid
from typing import Any, ClassVar

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.hashers import verify_password
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Lower

from caret.foundation.postgres.row_security import Grants
from tenants.base.operator_roles import OperatorRole


class UserManager(BaseUserManager["User"]):
    """Finds users by e-mail address, in upper or lower case, for Django's sign-in."""

    def get_by_natural_key(self, username: str | None) -> "User":
        return self.get(email=(username or "").strip().lower())


class User(AbstractBaseUser):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    email = models.EmailField(max_length=254, unique=True)  # lower case
    name = models.CharField(max_length=120)
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField()
    # Not a column. check_password sets it: the password is right, but its hash is outdated.
    has_outdated_hash = False

    objects: ClassVar[Any] = UserManager()

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=models.Q(email=Lower("email")), name="user_email_lower"
            ),
            Grants(
                name="user_grants",
                reason="users sign in before a tenant is known",
                privileges=("SELECT", "INSERT", "UPDATE"),
            ),
        ]

    def __str__(self) -> str:
        return self.email

    def check_password(self, raw_password: str | None) -> bool:
        """Return whether the password is right, and set `has_outdated_hash`.

        Unlike Django's method, this one does not replace an outdated hash. A new hash would end the
        user's sessions, even if the user only confirms the password again. Sign-in replaces the
        hash.
        """
        is_right, is_outdated = verify_password(raw_password, self.password)
        self.has_outdated_hash = is_right and is_outdated
        return is_right


class Operator(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    # Never reused, because audit logs name the operator by the handle forever.
    handle = models.CharField(max_length=20, unique=True)
    name = models.CharField(max_length=120)
    role = models.CharField(max_length=12, choices=[(r.value, r.name) for r in OperatorRole])
    password = models.CharField(max_length=128)  # hashed
    # The encrypted secret of the one-time codes (tenants.fleet.operators.totp).
    sealed_factor = models.BinaryField()
    # The time step of the last accepted code. Only codes of later time steps are valid.
    last_totp_step = models.BigIntegerField(default=0)
    created_at = models.DateTimeField()
    disabled_at = models.DateTimeField(null=True)  # None: enabled

    class Meta:
        constraints: ClassVar = [
            Grants(
                name="operator_grants",
                reason="the platform's own people, who belong to no tenant",
                privileges=("SELECT", "INSERT", "UPDATE"),
            )
        ]

    def __str__(self) -> str:
        return self.handle


class OperatorKey(models.Model):
    """A key for the platform API. Its text is shown once; audit logs name its lookup ID."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    lookup_id = models.CharField(max_length=8, unique=True)
    digest = models.BinaryField()  # 32 bytes, see caret.contracts.api_key.digest_key
    pepper_version = models.PositiveSmallIntegerField()  # of the pepper in the digest
    name = models.CharField(max_length=120)
    scopes = ArrayField(models.CharField(max_length=40))  # sorted
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)  # None: in force

    class Meta:
        constraints: ClassVar = [
            Grants(
                name="operator_key_grants",
                reason="the platform's own scripts, which belong to no tenant",
                privileges=("SELECT", "INSERT", "UPDATE"),
            )
        ]

    def __str__(self) -> str:
        return self.lookup_id
