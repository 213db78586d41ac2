"""Self-service sign-up: a company creates its own tenant. The settings give its plan and trial.

    request_sign_up --e-mail with a link--> complete_sign_up

The link works once, within an hour. It is sent to every e-mail address, with an account or without
one, so that nobody learns which addresses have accounts. The tenant is created only after the link
was opened. Its first owner then accepts an invitation, as in every new tenant.

Redis key and value:

    caret:sign-up:<digest of the token>   the encrypted request
"""

import hashlib
import json
import re
import secrets
import smtplib
import unicodedata
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import structlog
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.mail import send_mail
from django.core.validators import validate_email
from django.utils.translation import gettext_noop

from caret.foundation.crypto.aead import DecryptionFailed, seal, unseal
from caret.foundation.crypto.key_derivation import derive_key
from tenants.base.billing_periods import ONE_DAY, utc_day
from tenants.base.errors import Conflict, DomainError, InvalidValue, NotFound
from tenants.base.redis_connection import connect_to_redis
from tenants.base.validation.text import is_storable
from tenants.identity.members.operations import check_slug, parse_tenant_name
from tenants.identity.tenant_lifecycle import NewTenant, OnboardedTenant, onboard_tenant
from tenants.models import Tenant
from tenants.security.authorization.actor import build_system_actor

logger = structlog.get_logger(__name__)

LIFETIME: Final = timedelta(hours=1)  # of a link
_MAX_EMAIL_CHARS: Final = 254  # the column's length
_MAX_SLUG_CHARS: Final = 63  # the column's length
_MAX_PROPOSALS: Final = 20  # slugs that are tried
_PURPOSE: Final = "sign-up/1"  # of the encryption key
_INVALID_LINK: Final = gettext_noop("This link was already used, or it has expired.")
_TEXT: Final = """Somebody, probably you, wants to create the tenant {company} in Caret, the
code-completion service.

{url}

The link works once and expires after one hour. You become the owner of the tenant.
If this was not you, you can ignore this e-mail: nothing is created.
"""


@dataclass(frozen=True, slots=True)
class SignUpRequest:
    company: str  # the name of the new tenant
    slug: str  # of the new tenant; "": request_sign_up proposes one
    email: str


def propose_slug(company: str) -> str:
    """Return a free slug that resembles the company's name; "": none was found."""
    plain = unicodedata.normalize("NFKD", company.lower().replace("ß", "ss"))
    letters = "".join(char for char in plain if not unicodedata.combining(char))
    # A slug starts with a letter and does not end with a hyphen.
    words = re.sub(r"[^a-z0-9]+", "-", letters).lstrip("-0123456789")[:_MAX_SLUG_CHARS].rstrip("-")
    for number in range(1, _MAX_PROPOSALS + 1):
        suffix = "" if number == 1 else f"-{number}"
        slug = words[: _MAX_SLUG_CHARS - len(suffix)].rstrip("-") + suffix
        try:
            require_free_slug(slug)
        except DomainError:
            continue
        return slug
    return ""


def require_free_slug(slug: str) -> None:
    """Check that a new tenant can have the slug. Raises InvalidValue."""
    check_slug(slug)
    if Tenant.objects.filter(slug=slug).exists():
        raise InvalidValue("slug", "The slug {slug} is taken. Choose another.", slug=slug)


def request_sign_up(sign_up_request: SignUpRequest) -> None:
    """Send the link. An empty slug is replaced by a proposal.

    Raises InvalidValue, Conflict if the mail server does not accept the e-mail, and
    redis.RedisError.
    """
    company = parse_tenant_name(sign_up_request.company)
    email = _read_email(sign_up_request.email)
    slug = sign_up_request.slug.strip() or propose_slug(company)
    require_free_slug(slug)
    url = create_sign_up_link(SignUpRequest(company, slug, email))
    try:
        send_mail(
            "Create your tenant in Caret", _TEXT.format(company=company, url=url), None, [email]
        )
    except (smtplib.SMTPException, OSError) as error:
        logger.warning("sign_up.not_mailed", reason=type(error).__name__)
        raise Conflict(
            "The mail server does not accept e-mail right now. Try again later."
        ) from error


def create_sign_up_link(sign_up_request: SignUpRequest) -> str:
    """Return a link that creates the tenant, once. Raises redis.RedisError."""
    token = secrets.token_urlsafe(32)
    _store(token, sign_up_request, ttl_s=int(LIFETIME.total_seconds()))
    return f"{settings.CONSOLE_URL}/sign-up/{token}"


def find_sign_up(token: str) -> SignUpRequest:
    """Return the request that a link belongs to. Raises NotFound, redis.RedisError."""
    return _unseal(token, connect_to_redis().get(_build_redis_key(token)))


def complete_sign_up(*, token: str, slug: str, now: datetime) -> OnboardedTenant:
    """Create the tenant with a link, once. After an error, the link still works.

    `slug` replaces the requested one, which may have been taken since. Raises InvalidValue,
    NotFound, Conflict, redis.RedisError.
    """
    connection, redis_key = connect_to_redis(), _build_redis_key(token)
    ttl_s: Any = connection.ttl(redis_key)
    # The second of two concurrent uses finds nothing.
    sign_up_request = _unseal(token, connection.getdel(redis_key))
    try:
        require_free_slug(slug)
        return onboard_tenant(
            new=NewTenant(
                slug=slug,
                name=sign_up_request.company,
                owner_email=sign_up_request.email,
                plan=settings.SIGN_UP_PLAN or None,
                trial_ends_on=utc_day(now) + settings.SIGN_UP_TRIAL_DAYS * ONE_DAY,
            ),
            actor_for=build_system_actor,
            now=now,
        )
    except Exception:
        # Redis rounds the last half second to 0, which `set` would reject.
        _store(token, sign_up_request, ttl_s=max(1, ttl_s))
        raise


def _store(token: str, sign_up_request: SignUpRequest, *, ttl_s: int) -> None:
    text = json.dumps(asdict(sign_up_request)).encode()
    redis_key = _build_redis_key(token)
    connect_to_redis().set(
        redis_key, seal(_derive_encryption_key(), text, bound_to=redis_key.encode()), ex=ttl_s
    )


def _unseal(token: str, sealed: object) -> SignUpRequest:
    if not isinstance(sealed, bytes):
        raise NotFound(_INVALID_LINK)
    try:
        text = unseal(_derive_encryption_key(), sealed, bound_to=_build_redis_key(token).encode())
    except DecryptionFailed as error:  # stored before a change of the root secret
        raise NotFound(_INVALID_LINK) from error
    return SignUpRequest(**json.loads(text))


def _build_redis_key(token: str) -> str:
    digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
    return f"caret:sign-up:{digest}"


def _derive_encryption_key() -> bytes:
    return derive_key(settings.ROOT_SECRET, _PURPOSE)


def _read_email(text: str) -> str:
    """Return the address in lower case. Raises InvalidValue."""
    email = text.strip().lower()
    try:
        validate_email(email)
    except ValidationError as error:
        raise InvalidValue("email", "This is not a valid e-mail address.") from error
    if len(email) > _MAX_EMAIL_CHARS or not is_storable(email):
        raise InvalidValue("email", "This is not a valid e-mail address.")
    return email
