"""Django's settings, read once from the environment; the data plane has its own frozen config.

The defaults fit the local installation in CARET_HOME that `manage.py up` creates. In production,
these settings are required: DATABASE_URL, CARET_OWNER_DATABASE_URL (for migrations), REDIS_URL,
CARET_ROOT_SECRET (or CARET_ROOT_SECRET_FILE) and CARET_ALLOWED_HOSTS.
"""

from pathlib import Path

from caret.foundation.broker_url import broker_from_redis_url
from caret.foundation.crypto.key_derivation import derive_key, parse_root_secret
from caret.foundation.environment import (
    env_bool,
    env_int,
    env_list,
    env_networks,
    env_optional_secret,
    env_secret,
    env_server,
    env_text,
    env_url_prefix,
)
from caret.local.paths import home_from_environment
from caret.settings.service_urls import (
    database_from_url,
    gateway_metrics_from_environment,
    mail_from_url,
    storage_from,
)

REPOSITORY = Path(__file__).resolve().parents[3]
EMBEDDED = home_from_environment()

DEBUG = env_bool("CARET_DEBUG", False)
# Set by `make dev`: changed templates and static files are reloaded.
RELOAD = env_bool("CARET_RELOAD", False)
ROOT_SECRET = parse_root_secret(env_secret("CARET_ROOT_SECRET", default_file=EMBEDDED.root_secret))
# Root keys encrypt tenant keys; tenants.security.encryption.root_keys defines the formats.
ROOT_KEYS = env_list("CARET_ROOT_KEYS", "root-secret")
SECRET_KEY = derive_key(ROOT_SECRET, "django/1").hex()
# A higher version signs with a new key. The keys of lower versions still verify old signatures.
SIGNING_KEY_VERSION = env_int("CARET_SIGNING_KEY_VERSION", 1, low=1, high=1_000)
ALLOWED_HOSTS = env_list("CARET_ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = env_list("CARET_CSRF_TRUSTED_ORIGINS")

INSTALLED_APPS = [
    "console",  # before unfold and allauth, to override their templates
    "unfold.apps.BasicAppConfig",  # before the admin, to override its templates
    "django.contrib.admin.apps.SimpleAdminConfig",  # for the operators' site; registers no model
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.humanize",
    "caret",
    "tenants",
    "django_cotton.apps.SimpleAppConfig",  # TEMPLATES names its loader and tags
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "allauth.usersessions",
]
MIDDLEWARE = [
    "console.web.request_metrics.RequestMetricsMiddleware",
    # Before all middleware that may respond, such as redirects.
    "console.web.middleware.NoStoreMiddleware",
    "console.web.middleware.PageCompressionMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "console.web.middleware.SecurityHeadersMiddleware",
    "console.web.middleware.Utf8OnlyMiddleware",
    "console.web.middleware.RedisErrorMiddleware",
    "console.sign_in.sessions.operator_cookies.OperatorCookieMiddleware",
    "console.sign_in.sessions.session_store.HashedSessionMiddleware",
    "console.web.middleware.SessionCredentialMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "console.layout.preferences.PreferencesMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "caret.urls"
_TEMPLATE_LOADERS = [
    "django_cotton.cotton_loader.Loader",
    "django.template.loaders.app_directories.Loader",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "OPTIONS": {
            "loaders": _TEMPLATE_LOADERS
            if RELOAD
            else [("django.template.loaders.cached.Loader", _TEMPLATE_LOADERS)],
            "builtins": ["django_cotton.templatetags.cotton"],
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]

# Two roles on one database (see caret.foundation.postgres). The application uses `default`, which
# row-level security binds. `owner` owns the tables, and is used only for migrations and partitions.
# In production, only the jobs for these get the owner's URL.
DATABASES = {
    "default": database_from_url(env_secret("DATABASE_URL", default_file=EMBEDDED.app_database_url))
}
if owner_url := env_optional_secret(
    "CARET_OWNER_DATABASE_URL", default_file=EMBEDDED.owner_database_url
):
    DATABASES["owner"] = database_from_url(owner_url)
DATABASE_ROUTERS = ["caret.foundation.postgres.database_router.MigrationRouter"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
REDIS_URL = env_secret("REDIS_URL", default_file=EMBEDDED.redis_url)

STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    # Captured content, encrypted before it is stored.
    "content": storage_from(
        "CARET_CONTENT_STORAGE", env_text("CARET_CONTENT_STORAGE", str(EMBEDDED.home / "content"))
    ),
    # Tombstones of destroyed encryption keys and erasures. They are not in the database, because
    # restoring it would bring back an older state.
    "destroyed_keys": storage_from(
        "CARET_TOMBSTONE_STORAGE",
        env_text("CARET_TOMBSTONE_STORAGE", str(EMBEDDED.home / "destroyed-keys")),
    ),
    # Tenants' exports, also encrypted, and kept for a few days.
    "exports": storage_from(
        "CARET_EXPORT_STORAGE", env_text("CARET_EXPORT_STORAGE", str(EMBEDDED.home / "exports"))
    ),
}

AUTH_USER_MODEL = "tenants.User"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    },
    {"NAME": "tenants.identity.members.password_validation.LeakedPasswordValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator",
        "OPTIONS": {"user_attributes": ("email", "name")},
    },
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
PASSWORD_RESET_TIMEOUT = 3600  # seconds
# django-allauth signs users in, behind our own pages, throttling and password checks.
ACCOUNT_ADAPTER = "console.sign_in.account_adapter.AccountAdapter"
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*"]
# console.limits.throttling limits passwords and codes. allauth's own limits also count passkeys, so
# guessing codes would block the owner's passkey.
ACCOUNT_RATE_LIMITS = {"login_failed": None, "reauthenticate": None}
# An e-mail address is verified before its account exists, by an invitation or a verified domain.
ACCOUNT_EMAIL_VERIFICATION = "none"
MFA_ALLOW_UNVERIFIED_EMAIL = True
MFA_ADAPTER = "console.sign_in.mfa.adapter.SecondFactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_FORMS = {
    "authenticate": "console.sign_in.mfa.code_forms.SingleUseCodeForm",
    "reauthenticate": "console.sign_in.mfa.code_forms.SingleUseCodeStepUpForm",
    "add_webauthn": "console.sign_in.mfa.passkey_forms.AddPasskeyForm",
    "edit_webauthn": "console.sign_in.mfa.passkey_forms.RenamePasskeyForm",
    "authenticate_webauthn": "console.sign_in.mfa.passkey_forms.PasskeySecondFactorForm",
    "reauthenticate_webauthn": "console.sign_in.mfa.passkey_forms.PasskeyStepUpForm",
}
MFA_TOTP_ISSUER = "Caret"
MFA_TOTP_TOLERANCE = 1  # steps of 30 s, for inaccurate clocks
SOCIALACCOUNT_ADAPTER = "console.sign_in.sso.oidc.IdentityProviderAdapter"
SOCIALACCOUNT_STORE_TOKENS = False
LOGIN_URL = "console:sign-in"
LOGIN_REDIRECT_URL = "console:overview"
CSRF_FAILURE_VIEW = "console.views.errors.csrf_failed"
SESSION_ENGINE = "console.sign_in.sessions.session_store"
SESSION_COOKIE_AGE = 14 * 24 * 3600  # seconds

# Metrics endpoints of the gateways, which the operators' pages read.
GATEWAY_METRICS = gateway_metrics_from_environment()
# Cost of one replica for an hour, for the costs on the operators' pages.
REPLICA_HOUR_CENTS = env_int("CARET_REPLICA_COST_PER_HOUR_CENTS", 300, low=0, high=10_000_000)
# URL prefix of the operators' pages, such as operators/; None: there are no operators' pages.
OPERATORS_PATH = env_url_prefix("CARET_OPERATOR_ADMIN_PATH")

# Plain HTTP is only for the local installation on the loopback address.
HTTPS = env_bool("CARET_HTTPS", False)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = HTTPS
SESSION_COOKIE_NAME = "__Host-caret-session" if HTTPS else "caret-session"
CSRF_COOKIE_NAME = "__Host-caret-csrf" if HTTPS else "caret-csrf"
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = HTTPS
SECURE_REDIRECT_EXEMPT = [r"^healthz$"]
# No SECURE_PROXY_SSL_HEADER: it would trust any client. uvicorn sets the scheme that the proxies of
# CARET_TRUSTED_PROXIES forward.
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True
X_FRAME_OPTIONS = "DENY"
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024  # bytes of a request body

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("de", "Deutsch")]
FORMAT_MODULE_PATH = ["console.date_formats"]
LANGUAGE_COOKIE_NAME = "caret-language"
TIME_ZONE = "UTC"
USE_TZ = True
# The gateways' URL for clients, as the console shows it.
GATEWAY_URL = env_text(
    "CARET_GATEWAY_URL", f"http://127.0.0.1:{env_text('CARET_GATEWAY_PORT', '8401')}"
)

# Caret's own clients, which users download from the console.
DOWNLOADS = Path(env_text("CARET_DOWNLOADS", str(EMBEDDED.home / "downloads")))

# Repositories of public code, and the indexes of them that operators build.
PUBLIC_CODE_FOLDER = Path(env_text("CARET_PUBLIC_CODE_FOLDER", str(EMBEDDED.home / "public-code")))

# The operator's name for the region where this installation stores its tenants' data.
REGION = env_text("CARET_REGION", "local")
# Gateways of other regions reject the requests of this installation's tenants.
PIN_TENANTS = env_bool("CARET_ENFORCE_TENANT_REGION", False)
# The base of links in e-mails. It is never taken from a request, whose Host header can be forged.
CONSOLE_URL = env_text(
    "CARET_CONSOLE_URL", f"http://127.0.0.1:{env_text('CARET_CONSOLE_PORT', '8400')}"
)
# Without a mail server, e-mails are files in CARET_HOME that an operator can read.
EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
EMAIL_FILE_PATH = str(EMBEDDED.home / "mail")
if smtp_url := env_optional_secret("CARET_SMTP_URL", default_file=EMBEDDED.secrets / "smtp-url"):
    EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    vars().update(mail_from_url(smtp_url))  # sets EMAIL_HOST and others in this module
DEFAULT_FROM_EMAIL = env_text("CARET_MAIL_FROM", "Caret <caret@localhost>")
# Invitations of a tenant within 24 hours: in total, and to one e-mail address. Resending counts.
MAX_INVITATIONS_A_DAY = env_int("CARET_MAX_INVITATIONS_A_DAY", 50, low=1, high=100_000)
MAX_INVITATIONS_A_DAY_AND_ADDRESS = env_int(
    "CARET_MAX_INVITATIONS_A_DAY_AND_ADDRESS", 3, low=1, high=100
)

# Self-service sign-up: companies create their own tenants, with this plan ("": none) and trial.
SELF_SIGN_UP = env_bool("CARET_SELF_SIGN_UP", False)
SIGN_UP_PLAN = env_text("CARET_SIGN_UP_PLAN", "")
SIGN_UP_TRIAL_DAYS = env_int("CARET_SIGN_UP_TRIAL_DAYS", 30, low=1, high=365)
MAX_SIGN_UPS_AN_HOUR = env_int("CARET_MAX_SIGN_UPS_AN_HOUR", 60, low=1, high=100_000)
# Days between the decision to close a tenant and the deletion of its data.
CLOSING_GRACE_DAYS = env_int("CARET_CLOSING_GRACE_DAYS", 30, low=1, high=365)

# The issuer of invoices; "|" separates the lines of an address or of payment terms.
INVOICE_ISSUER = env_text("CARET_INVOICE_ISSUER", "Caret")
INVOICE_ADDRESS = env_list("CARET_INVOICE_ADDRESS", separator="|")
INVOICE_TAX_ID = env_text("CARET_INVOICE_TAX_ID", "")
INVOICE_EMAIL = env_text("CARET_INVOICE_EMAIL", "")
INVOICE_COUNTRY = env_text("CARET_INVOICE_COUNTRY", "")  # ISO 3166-1 alpha-2, for e-invoices
INVOICE_IBAN = env_text("CARET_INVOICE_IBAN", "")
INVOICE_BIC = env_text("CARET_INVOICE_BIC", "")
INVOICE_BANK = env_text("CARET_INVOICE_BANK", "")
INVOICE_LOGO = env_text("CARET_INVOICE_LOGO", "")  # path of a PNG or JPEG file
INVOICE_PAYMENT = env_list("CARET_INVOICE_PAYMENT", separator="|")
INVOICE_DUE_DAYS = env_int("CARET_INVOICE_DUE_DAYS", 14, low=0, high=365)
# For the record of processing that each tenant can export; "|" separates several entries.
DATA_PROTECTION_CONTACT = env_list("CARET_DATA_PROTECTION_CONTACT", separator="|")
SUBPROCESSORS = env_list("CARET_SUBPROCESSORS", separator="|")  # "NAME, purpose and location"
TRANSFERS = env_list("CARET_DATA_TRANSFERS", separator="|")  # "COUNTRY, safeguards"
# Without Stripe's key, nothing is reported to Stripe.
STRIPE_KEY = env_optional_secret("CARET_STRIPE_KEY", default_file=EMBEDDED.secrets / "stripe-key")
STRIPE_URL = env_text("CARET_STRIPE_URL", "https://api.stripe.com")

# Reports of leaked keys are authenticated by this secret, or by GitHub's signature (see
# console.api.leak_report_auth). None: reports with a secret are rejected.
LEAK_REPORT_SECRET = env_optional_secret(
    "CARET_LEAK_REPORT_SECRET", default_file=EMBEDDED.secrets / "leak-report-secret"
)
# Path of the file with GitHub's public keys; None: GitHub's reports are rejected.
GITHUB_SCANNING_KEYS = env_text("CARET_GITHUB_SECRET_SCANNING_KEYS", "") or None

# Retrieval is off unless the operator enables it. Then each tenant's policy decides.
RETRIEVAL = env_bool("CARET_RETRIEVAL", False)
EMBEDDINGS_URL = env_text(
    "CARET_EMBEDDINGS_URL", f"http://127.0.0.1:{env_text('CARET_EMBEDDINGS_PORT', '8404')}"
)
EMBEDDINGS_MODEL = env_text("CARET_EMBEDDINGS_MODEL", "all-minilm-l6-v2")

# The operator's own networks. The SIEMs, webhooks and identity providers that tenants choose may be
# in these networks, even without encryption. Outside of them, they must have public IP addresses,
# and the connections must be encrypted.
PRIVATE_TARGETS = env_networks("CARET_ALLOWED_PRIVATE_NETWORKS")
# DNS server (IP address, port) that confirms tenants' domains; None: the machine's DNS servers.
DOMAIN_RESOLVER = env_server("CARET_DOMAIN_RESOLVER")

# Stores used codes of second factors, for all processes.
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
        "KEY_PREFIX": "caret:cache",
        # Without a timeout, a page would hang as long as Redis hangs.
        "OPTIONS": {"socket_timeout": 1.0, "socket_connect_timeout": 1.0},
    }
}

CELERY_BROKER_URL = broker_from_redis_url(REDIS_URL)
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
# Otherwise each busy process would reserve three further tasks, which then wait for it although
# other workers are idle. Beat sends no other run of a task while one waits.
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# A task that hangs blocks one of few processes. After an hour, Redis would deliver an
# unacknowledged task to a second worker while the first still runs it. So both limits are less than
# an hour.
# Every task can be interrupted: finished work is stored, and the next run continues. Therefore, no
# `except Exception` in a task may swallow SoftTimeLimitExceeded.
CELERY_TASK_SOFT_TIME_LIMIT = 30 * 60  # raises in the task, which rolls back and releases its locks
CELERY_TASK_TIME_LIMIT = 35 * 60  # kills the worker process
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False

LOGGING_CONFIG = None  # caret.foundation.log_config configures logging once per process
