"""`caret GROUP COMMAND`: the REST API on the command line, made from its own description.

command_line > operations (what the description says) > arguments > exchange > show
"""
