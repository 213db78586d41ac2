"""The Content-Security-Policy header of the pages."""

from typing import Final

# Pages load nothing from other origins and contain nothing inline; the functions below make the
# exceptions. The console works without its scripts, except for passkeys (browsers offer them only
# to scripts), the playground, live charts and the reference of the REST API.
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


# The operator pages may load fonts from the console's own origin. None is served today.
OPERATORS_POLICY: Final = "; ".join([*_DIRECTIVES, "font-src 'self'"])


def policy_with(*, style_nonce: str, connects_to: str) -> str:
    """Return the policy of a page whose script adds styles and connects to another origin."""
    replacements = {
        "style-src 'self'": f"style-src 'self' 'nonce-{style_nonce}'",
        "connect-src 'self'": f"connect-src 'self' {connects_to}",
    }
    return "; ".join(replacements.get(directive, directive) for directive in _DIRECTIVES)


def policy_with_data_images() -> str:
    """Return the policy of a page whose style sheet contains images, as Swagger UI's does."""
    replacements = {"img-src 'self'": "img-src 'self' data:"}
    return "; ".join(replacements.get(directive, directive) for directive in _DIRECTIVES)
