"""Exports built in the background: asked for, built, fetched by a link, and gone after some days.

states.py       what a build may be, and become
operations.py   asks for one, cancels it, gives a link
queries.py      shows them
build.py        reads rows into sealed parts, then writes the file from those
claim.py        whose build it is, so that two workers never build one
sealed.py       sealed objects of the store: parts, and pieces of the file
download.py     the file again, by a link
sweep.py        what is over loses its key, then its objects
"""
