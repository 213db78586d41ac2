"""What was changed, by whom, from where: written in the transaction of the change itself."""
