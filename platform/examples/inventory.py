"""The stock of a small shop."""


class Inventory:
    def __init__(self):
        self.items = {}

    def add(self, name, count=1):
        self.items[name] = self.items.get(name, 0) + count

    def remove(self, name, count=1):
        

    def total(self):
        return sum(self.items.values())
