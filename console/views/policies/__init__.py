"""Pages about what the tenant allows: in force, changed, of teams and users, explained.

words.py      what each field is called and means, and its value in words
changes.py    two policies side by side
forms.py      a policy as fields of a form, and back
layer_forms.py  ... likewise what is said of a team or a user
review.py     what a change would do, the reason, and saving it
"""
