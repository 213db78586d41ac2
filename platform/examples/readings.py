"""Readings of a sensor, stored in a file with one on each line."""


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
