"""The Content-Security-Policy header of the pages."""

from typing import Final

# By default, pages load nothing from other origins, and contain no inline scripts or styles. The
# functions below return the policies of the exceptions.
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
# The theme of the operators' pages may load fonts from the console's own origin.
OPERATORS_POLICY: Final = "; ".join([*_DIRECTIVES, "font-src 'self'"])


def policy_with(*, style_nonce: str, connects_to: str) -> str:
    """Return the policy of a page whose script adds styles and connects to another origin.

    `connects_to` is the other origin. The added styles need the nonce.
    """
    replacements = {
        "style-src 'self'": f"style-src 'self' 'nonce-{style_nonce}'",
        "connect-src 'self'": f"connect-src 'self' {connects_to}",
    }
    return "; ".join(replacements.get(directive, directive) for directive in _DIRECTIVES)


def policy_with_data_images() -> str:
    """Return the policy of a page whose style sheet has images as data: URLs, like Swagger UI's."""
    replacements = {"img-src 'self'": "img-src 'self' data:"}
    return "; ".join(replacements.get(directive, directive) for directive in _DIRECTIVES)
