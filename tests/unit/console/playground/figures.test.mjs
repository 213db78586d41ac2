import assert from "node:assert/strict";
import { test } from "node:test";

import { endsSession, explained, shares, totals } from "../../../../console/playground/figures.js";

const TEXTS = {
  finish: { stop: "Stopped.", filtered: "Withheld.", shed: "Shed." },
  cut: { secret: "A secret.", line_end: "One line." },
  error: { rate_limited: "Too many." },
  empty: "Nothing to add.",
  retry: "In {seconds} s.",
};
const done = (finish, cut = "") => ({ type: "done", finish_reason: finish, meta: { filter_reason: cut } });

for (const [name, frame, text, outcome, sentences] of [
  ["text that ended well", done("stop"), "a", "shown", ["Stopped."]],
  ["text that was cut", done("stop", "line_end"), "a", "shown", ["Stopped.", "One line."]],
  ["no text", done("stop"), "", "nothing", ["Nothing to add."]],
  ["text that was withheld", done("filtered", "secret"), "a", "nothing", ["Withheld.", "A secret."]],
  ["what was shed", done("shed"), "", "nothing", ["Shed."]],
  ["a finish of a newer gateway", done("napping"), "", "nothing", ["napping"]],
  ["an error", { type: "error", code: "rate_limited", message: "m" }, "", "refused", ["Too many."]],
  [
    "an error that says when to come back",
    { type: "error", code: "rate_limited", message: "m", retry_after_s: 1.2 },
    ...["", "refused", ["Too many.", "In 2 s."]],
  ],
  ["an error of a newer gateway", { type: "error", code: "new", message: "m" }, "", "refused", ["m"]],
]) {
  test(`${name} is explained`, () => {
    assert.deepEqual(explained(frame, text, TEXTS), { outcome, sentences });
  });
}

test("with a key that is over the session is", () => {
  assert.ok(endsSession({ type: "error", code: "expired_api_key" }));
  assert.ok(!endsSession({ type: "error", code: "rate_limited" }));
  assert.ok(!endsSession(done("stop")));
});

const SEGMENTS = [
  { kind: "files", tokens: 60, cached_tokens: 60 },
  { kind: "markers", tokens: 10, cached_tokens: 5 },
  { kind: "suffix", tokens: 20, cached_tokens: 0 },
  { kind: "markers", tokens: 10, cached_tokens: 0 },
];

test("shares stand one behind the other and are all of it", () => {
  const found = shares(SEGMENTS);
  assert.deepEqual(found.map((share) => share.from), [0, 0.6, 0.7, 0.9]);
  assert.ok(Math.abs(found.reduce((sum, share) => sum + share.width, 0) - 1) < 1e-9);
  assert.deepEqual(found.map((share) => share.cachedWidth), [0.6, 0.05, 0, 0]);
});

test("each kind is counted once", () => {
  assert.deepEqual(totals(SEGMENTS)[1], { kind: "markers", tokens: 20, cached: 5 });
});

test("what the engine did not tell is not taken for none", () => {
  const untold = SEGMENTS.map((segment) => ({ ...segment, cached_tokens: null }));
  assert.ok(totals(untold).every((total) => total.cached === null));
});
