"""`caret GROUP COMMAND`: the REST API on the command line, generated from its OpenAPI document.

cli runs a command. It uses the other modules in this order:

    http_client           fetches the OpenAPI document
    openapi_operations    finds the operations in the document
    arguments             parses the command line
    http_client           sends the request
    output                prints the response

export_command has the only command that is not generated.
"""
