"""The pages of the tenant's policy. The main modules and packages:

presenters.py  titles, meanings and values of the fields
diff.py        compares two policies
forms.py       converts a policy to form fields and back
review/        shows the effect of a change, asks for a reason, and saves the change
overrides/     lists, edits and reviews the overrides of teams and users
"""
