"""The REST API, built with django-ninja.

Its callers are members with a console session, programs with a service key or an operator key, and
secret scanners. A module with endpoints also has their router and the schemas of their requests and
responses.

Operations and queries enforce the permissions. An endpoint checks a permission itself only if its
operation or query does not, or if the check must come first. `x-permissions` only documents the
permissions in the OpenAPI document.
"""
