"""`caret GROUP COMMAND`: the REST API on the command line, generated from its OpenAPI document.

cli > openapi_operations > arguments > http_client > output
"""
