"""The REST API: django-ninja's, for the session of somebody who is signed in.

One router a module; shapes stand beside the endpoints that take or give them. Permissions are
enforced by operations and queries; an endpoint names them in its OpenAPI as `x-permissions`.
"""
