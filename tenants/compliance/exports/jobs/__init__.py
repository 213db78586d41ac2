"""Export jobs. They run in the background, and write a file that is kept for some days.

state_machine.py    the states of a job
operations.py       requests a job, cancels it, creates a signed URL
queries.py          lists jobs
run.py              reads rows into encrypted parts, then writes the file
claim.py            makes sure that only one worker runs a job
files/              encrypted parts and files in the object store
download.py         serves the file for a signed URL
cleanup.py          destroys the encryption key of an expired job, then its objects
"""
