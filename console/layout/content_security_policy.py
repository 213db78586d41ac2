"""The content security policy of the pages."""

from typing import Final

# Nothing from elsewhere, nothing inline. The console works without its scripts, except for
# passkeys, which browsers give to scripts alone, the playground and charts that live.
_DIRECTIVES: Final = [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
]


POLICY: Final = "; ".join(_DIRECTIVES)


# The operators' pages have a typeface.
OPERATORS_POLICY: Final = "; ".join([*_DIRECTIVES, "font-src 'self'"])


def policy_with(*, style_nonce: str, connects_to: str) -> str:
    """For a page whose script makes styles, and speaks to another origin."""
    more = {
        "style-src 'self'": f"style-src 'self' 'nonce-{style_nonce}'",
        "connect-src 'self'": f"connect-src 'self' {connects_to}",
    }
    return "; ".join(more.get(directive, directive) for directive in _DIRECTIVES)
