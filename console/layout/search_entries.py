"""Search entries for pages, settings and actions that are not in the sidebar.

Each entry has more search terms, such as synonyms, in each language. A test opens the page of each
entry.
"""

from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from django.urls import reverse
from django.utils import translation
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from tenants.base.permissions import Permission
from tenants.security.authorization.actor import Actor

_P = Permission
# Two words are forms of each other if they begin with the same _MIN_STEM_CHARS or more characters,
# and the longer word has at most _MAX_ENDING_CHARS after them.
_MIN_STEM_CHARS: Final = 5
_MAX_ENDING_CHARS: Final = 3
# Endings of plurals in English and German: "keys" also finds "key".
_PLURALS: Final = ("s", "es", "e", "en", "n")


@dataclass(frozen=True, slots=True)
class SearchEntry:
    icon: str
    title: Promise
    url_name: str
    needs: tuple[Permission, ...]  # one of these is enough; empty: open to everybody
    words: Promise  # more search terms
    query: str = ""  # end of the URL: "?name=value" or "#fragment"

    def is_open_to(self, actor: Actor) -> bool:
        return not self.needs or any(map(actor.has_permission, self.needs))

    @property
    def url(self) -> str:
        return reverse(self.url_name) + self.query


# Short names, so that most entries fit on two lines.
_E: Final = SearchEntry
_USAGE: Final = (_P.READ_USAGE, _P.READ_OWN_USAGE)
_READ_KEYS: Final = (_P.READ_KEYS, _P.READ_OWN_KEYS)
ENTRIES: Final = (
    _E("gauge", _("Performance"), "console:overview-performance", _USAGE,
       _("latency first token p99 speed figures metrics")),
    _E("add", _("New key"), "console:keys-new", (_P.CREATE_KEYS,),
       _("create api key token secret make")),
    _E("send", _("Test a key"), "console:keys", _READ_KEYS, _("try api key token works check")),
    _E("rotate", _("Rotate or revoke a key"), "console:keys", (_P.CREATE_KEYS,),
       _("replace secret delete block leaked lost key")),
    _E("settings", _("Key policy"), "console:keys-policy", (_P.WRITE_POLICY,),
       _("maximum lifetime expiry idle keys rules")),
    _E("warning", _("Leaked keys"), "console:keys", _READ_KEYS, _("public github secret scanning"),
       "?concern=leaked"),
    _E("add", _("Invite members"), "console:members-invite", (_P.WRITE_MEMBERS,),
       _("add user person seat colleague invitation")),
    _E("mail", _("Invitations"), "console:members-invitations", (_P.READ_MEMBERS,),
       _("pending resend e-mail invite")),
    _E("add", _("New team"), "console:teams-new", (_P.WRITE_TEAMS,), _("create add group")),
    _E("download", _("Download usage as CSV"), "console:usage", _USAGE,
       _("usage csv file excel spreadsheet report export"), "?as=csv"),
    _E("download", _("Download requests as CSV"), "console:usage-requests", _USAGE,
       _("requests csv file excel spreadsheet export"), "?as=csv"),
    _E("usage", _("Requests"), "console:usage-requests", _USAGE,
       _("slow failed rejected list latency log")),
    _E("good", _("Acceptance and quality"), "console:usage-quality",
       (_P.READ_QUALITY, _P.READ_OWN_QUALITY), _("accepted suggestions rate persistence car")),
    _E("delete", _("Purge the prefix cache"), "console:cache-purge", (_P.WRITE_POLICY,),
       _("empty clear flush delete cache")),
    _E("edit", _("Edit the policy"), "console:policies-edit", (_P.WRITE_POLICY,),
       _("change rules models modes features limits rate regions")),
    _E("clock", _("Policy versions"), "console:policies-history", (_P.READ_POLICY,),
       _("history undo previous changes")),
    _E("teams", _("Policy overrides"), "console:policies-overrides", (_P.READ_OVERRIDES,),
       _("team user exception restriction")),
    _E("help", _("Why was a request rejected?"), "console:policies-explain", (_P.READ_POLICY,),
       _("explain policy denied refused forbidden 403")),
    _E("exclusion", _("Blocked requests"), "console:exclusion-denials", _USAGE,
       _("denied rejected excluded paths secrets")),
    _E("password", _("Change password"), "console:password", (),
       _("password passphrase credentials login forgot")),
    _E("account", _("Passkeys and two-factor authentication"), "mfa_index", (),
       _("2fa mfa totp authenticator security key recovery codes passkey")),
    _E("account", _("Sessions"), "usersessions_list", (),
       _("devices signed in browsers sign out everywhere logout")),
    _E("preferences", _("Language and time zone"), "console:preferences", (),
       _("german english deutsch locale timezone utc")),
    _E("preferences", _("Dark mode"), "console:preferences", (), _("theme light colours colors")),
    _E("access", _("Set up SAML"), "console:access-saml", (_P.WRITE_SIGN_IN_SETTINGS,),
       _("single sign-on sso okta entra azure identity provider idp metadata certificate")),
    _E("access", _("Set up OpenID Connect"), "console:access-openid", (_P.WRITE_SIGN_IN_SETTINGS,),
       _("single sign-on sso oidc okta entra google identity provider idp")),
    _E("access", _("Domains"), "console:access", (_P.READ_SIGN_IN_SETTINGS,),
       _("verify dns txt record e-mail domain")),
    _E("access", _("SCIM tokens"), "console:access", (_P.READ_SIGN_IN_SETTINGS,),
       _("provisioning directory sync groups deprovisioning")),
    _E("access", _("Require two-factor authentication"), "console:access",
       (_P.READ_SIGN_IN_SETTINGS,), _("2fa mfa enforce second factor")),
    _E("privacy", _("Content capture"), "console:privacy-content-capture", (_P.WRITE_POLICY,),
       _("telemetry store prompts training data opt-in consent")),
    _E("privacy", _("Export or erase a person's data"), "console:privacy-people",
       (_P.EXPORT_DATA_SUBJECTS, _P.ERASE_DATA_SUBJECTS),
       _("gdpr dsgvo data subject access request right to be forgotten delete user")),
    _E("hold", _("Legal holds"), "console:retention-holds", (_P.READ_RETENTION,),
       _("litigation preserve keep stop deletion")),
    _E("file", _("Deletion certificates"), "console:retention-certificates", (_P.READ_RETENTION,),
       _("proof erasure purge evidence")),
    _E("billing", _("Invoices"), "console:billing-invoices", (_P.READ_BILLING,),
       _("bill pdf payment tax download")),
    _E("billing", _("Ledger"), "console:billing-ledger", (_P.READ_BILLING,),
       _("postings transactions credit csv")),
    _E("edit", _("Billing profile"), "console:billing-profile", (_P.READ_BILLING,),
       _("company address vat tax id invoice recipient")),
    _E("add", _("New budget"), "console:budgets-new", (_P.WRITE_BUDGETS,),
       _("create limit spending cap cost control alert")),
    _E("audit", _("Verify the audit log"), "console:audit-check", (_P.READ_AUDIT,),
       _("chain hash proof tamper integrity")),
    _E("add", _("New export"), "console:exports-new", (_P.EXPORT,),
       _("download data csv xlsx parquet evidence pack report")),
    _E("good", _("Verify an export"), "console:exports-verify", (_P.EXPORT,),
       _("signature proof integrity file")),
    _E("add", _("New audit log stream"), "console:sinks-new", (_P.WRITE_AUDIT_SINKS,),
       _("siem webhook syslog splunk sentinel datadog")),
    _E("download", _("Download the extension"), "console:editors", (_P.USE_PLAYGROUND,),
       _("vs code vscode vscodium vsix plugin install jetbrains language server wheel")),
    _E("help", _("Help"), "console:help", (), _("documentation manual guide documents support")),
    _E("help", _("Keyboard shortcuts"), "console:help", (), _("keys hotkeys shortcut"),
       "#keyboard"),
    _E("code", _("REST API reference"), "console:help-api", (),
       _("openapi swagger endpoints http automation curl")),
)  # fmt: skip


def find_entries(actor: Actor, words: list[str]) -> list[SearchEntry]:
    """Return the entries that have all words, and whose page the actor may open.

    Return an empty list if there are no words.
    """
    if not words:
        return []
    return [
        entry
        for entry in ENTRIES
        if entry.is_open_to(actor) and has_words(words, entry.title, entry.words)
    ]


def has_words(words: list[str], *texts: str | Promise) -> bool:
    """Return whether each search word is a form of a word of the texts.

    The texts are compared in the user's language and in English, because users also search for
    English terms such as "policy".
    """
    known_words = _words_of(texts)
    with translation.override("en"):
        known_words |= _words_of(texts)
    return all(any(is_form_of(word, known_word) for known_word in known_words) for word in words)


def _words_of(texts: tuple[str | Promise, ...]) -> set[str]:
    return set(" ".join(map(str, texts)).casefold().replace("-", " ").split())


def is_form_of(word: str, candidate: str) -> bool:
    """Return whether `candidate` begins with `word`, or differs from it only in the ending."""
    if candidate.startswith(word):
        return True
    # The length of the beginning that both words have in common.
    stem_chars = sum(
        1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(word, candidate, strict=False))
    )
    ending_chars = max(len(word), len(candidate)) - stem_chars
    is_plural = word.startswith(candidate) and word.removeprefix(candidate) in _PLURALS
    return is_plural or (stem_chars >= _MIN_STEM_CHARS and ending_chars <= _MAX_ENDING_CHARS)
