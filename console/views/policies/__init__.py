"""Policies: view, change, overrides of teams and users, explanation.

presenters.py  titles, meanings and values of the fields
diff.py        compares two policies
forms.py       converts a policy to form fields and back
review/        shows the effect of a change, asks for a reason, saves
overrides/     lists, edits and reviews the overrides of teams and users
"""
