"""Readings of a sensor. Line 10 is unfinished on purpose, as input for `manage.py complete`."""


class Readings:
    def __init__(self, path, encoding="utf-8"):
        self.path = path
        self.encoding = encoding

    def load(self):
        with open(self.path, 
            return [float(line) for line in f]

    def save(self, values):
        with open(self.path, "w", encoding=self.encoding) as f:
            f.writelines(f"{value}\n" for value in values)
