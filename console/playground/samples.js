// The editor's sample files: two for each language, with the cursor where code is missing.
// The second file shows how other files become part of a prompt.

const CURSOR_MARK = "‸";

function sample(...files) {
  return files.map(([path, marked]) => {
    const cursor = marked.indexOf(CURSOR_MARK);
    return { path, text: marked.replace(CURSOR_MARK, ""), cursor: Math.max(cursor, 0) };
  });
}

export const SAMPLES = {
  python: sample(
    ["inventory.py", `"""Counts what is on the shelves of a small shop."""

from prices import price_of


class Inventory:
    def __init__(self):
        self.items = {}

    def add(self, name, count=1):
        self.items[name] = self.items.get(name, 0) + count

    def remove(self, name, count=1):
        ‸

    def total(self):
        return sum(self.items.values())

    def worth(self):
        return sum(price_of(name) * count for name, count in self.items.items())
`],
    ["prices.py", `"""Prices in cents."""

PRICES = {"apple": 40, "bread": 320, "milk": 119}


class NoPrice(LookupError):
    pass


def price_of(name):
    """Raises NoPrice."""
    try:
        return PRICES[name]
    except KeyError:
        raise NoPrice(name) from None
`],
  ),
  javascript: sample(
    ["cart.js", `import { format } from "./money.js";

export class Cart {
  #lines = new Map();

  add(name, cents, count = 1) {
    const line = this.#lines.get(name) ?? { cents, count: 0 };
    this.#lines.set(name, { cents, count: line.count + count });
  }

  total() {
    ‸
  }

  toString() {
    return format(this.total());
  }
}
`],
    ["money.js", `export function format(cents) {
  return (cents / 100).toFixed(2);
}

export function parse(text) {
  return Math.round(Number(text) * 100);
}
`],
  ),
  typescript: sample(
    ["queue.ts", `import type { Job } from "./job";

export class Queue {
  private readonly waiting: Job[] = [];

  push(job: Job): void {
    this.waiting.push(job);
  }

  /** Returns the most urgent job, or undefined if none is waiting. */
  next(): Job | undefined {
    ‸
  }
}
`],
    ["job.ts", `export interface Job {
  readonly id: string;
  readonly priority: number;
  readonly dueAt: Date;
}

export function compare(one: Job, other: Job): number {
  return other.priority - one.priority || one.dueAt.getTime() - other.dueAt.getTime();
}
`],
  ),
  go: sample(
    ["stack.go", `package stack

// Stack holds values; the last in is the first out.
type Stack[T any] struct {
	values []T
}

func (s *Stack[T]) Push(value T) {
	s.values = append(s.values, value)
}

func (s *Stack[T]) Pop() (T, error) {
	‸
}
`],
    ["errors.go", `package stack

import "errors"

// ErrEmpty is returned by Pop if the stack is empty.
var ErrEmpty = errors.New("stack: empty")
`],
  ),
  rust: sample(
    ["matrix.rs", `use crate::shape::Shape;

pub struct Matrix {
    shape: Shape,
    values: Vec<f64>,
}

impl Matrix {
    pub fn zeros(shape: Shape) -> Self {
        Self { shape, values: vec![0.0; shape.len()] }
    }

    pub fn transposed(&self) -> Self {
        ‸
    }
}
`],
    ["shape.rs", `#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub rows: usize,
    pub columns: usize,
}

impl Shape {
    pub fn len(&self) -> usize {
        self.rows * self.columns
    }
}
`],
  ),
  java: sample(
    ["Account.java", `import java.util.ArrayList;
import java.util.List;

public final class Account {
    private final List<Booking> bookings = new ArrayList<>();

    public void book(Booking booking) {
        bookings.add(booking);
    }

    public long balanceInCents() {
        ‸
    }
}
`],
    ["Booking.java", `import java.time.LocalDate;

public record Booking(LocalDate date, String text, long cents) {
    public boolean isDeposit() {
        return cents > 0;
    }
}
`],
  ),
  cpp: sample(
    ["ring.cpp", `#include "ring.hpp"

Ring::Ring(std::size_t capacity) : values_(capacity) {}

bool Ring::push(int value) {
    ‸
}
`],
    ["ring.hpp", `#pragma once

#include <cstddef>
#include <vector>

// Holds the newest values. If it is full, a new value replaces the oldest.
class Ring {
public:
    explicit Ring(std::size_t capacity);
    bool push(int value);  // false: a value was replaced

private:
    std::vector<int> values_;
    std::size_t begin_ = 0;
    std::size_t size_ = 0;
};
`],
  ),
  sql: sample(
    ["report.sql", `-- Revenue by month and country, of orders that were paid.
SELECT
  ‸
FROM orders
JOIN customers ON customers.id = orders.customer_id
`],
    ["schema.sql", `CREATE TABLE customers (
  id bigint PRIMARY KEY,
  name text NOT NULL,
  country text NOT NULL
);

CREATE TABLE orders (
  id bigint PRIMARY KEY,
  customer_id bigint NOT NULL REFERENCES customers,
  cents bigint NOT NULL,
  paid_at timestamptz
);
`],
  ),
  html: sample(
    ["contact.html", `<form action="/contact" method="post">
  <label for="name">Name</label>
  <input id="name" name="name" autocomplete="name" required>
  <label for="email">E-mail</label>
  ‸
  <button>Send</button>
</form>
`],
    ["base.html", `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <title>A small shop</title>
    <link rel="stylesheet" href="shop.css">
  </head>
  <body></body>
</html>
`],
  ),
  css: sample(
    ["shop.css", `:root {
  --space: 1rem;
  --accent: #4a45d1;
}

.card {
  padding: var(--space);
  border-radius: 8px;
}

.button {
  ‸
}
`],
    ["print.css", `@media print {
  .button {
    display: none;
  }
}
`],
  ),
  json: sample(
    ["package.json", `{
  "name": "small-shop",
  "version": "1.0.0",
  "scripts": {
    "test": "node --test",
    ‸
  }
}
`],
    ["settings.json", `{
  "currency": "EUR",
  "languages": ["en", "de"],
  "openingHours": { "monday": "09:00-18:00" }
}
`],
  ),
  yaml: sample(
    ["compose.yaml", `services:
  shop:
    image: shop:1.0
    ports:
      - "8080:8080"
    environment:
      DATABASE_URL: postgresql://shop@database/shop
  database:
    ‸
`],
    ["ci.yaml", `name: tests
on: [push]
jobs:
  test:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - run: npm test
`],
  ),
};
