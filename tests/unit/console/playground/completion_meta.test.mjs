import assert from "node:assert/strict";
import { test } from "node:test";

import { endsSession, explain, segmentShares, totalsByKind } from "../../../../console/playground/completion_meta.js";

const TEXTS = {
  finish: { stop: "Stopped.", filtered: "Withheld.", shed: "Shed." },
  cut: { secret: "A secret.", line_end: "One line." },
  error: { rate_limited: "Too many." },
  empty: "Nothing to add.",
  retry: "In {seconds} s.",
};
const done = (finish, cut = "") => ({ type: "done", finish_reason: finish, meta: { filter_reason: cut } });

for (const [name, frame, text, outcome, sentences] of [
  ["a complete text", done("stop"), "a", "shown", ["Stopped."]],
  ["a shortened text", done("stop", "line_end"), "a", "shown", ["Stopped.", "One line."]],
  ["an empty text", done("stop"), "", "nothing", ["Nothing to add."]],
  ["a withheld text", done("filtered", "secret"), "a", "nothing", ["Withheld.", "A secret."]],
  ["a shed completion", done("shed"), "", "nothing", ["Shed."]],
  ["an unknown finish", done("napping"), "", "nothing", ["napping"]],
  ["an error", { type: "error", code: "rate_limited", message: "m" }, "", "refused", ["Too many."]],
  [
    "an error with retry_after_s",
    { type: "error", code: "rate_limited", message: "m", retry_after_s: 1.2 },
    ...["", "refused", ["Too many.", "In 2 s."]],
  ],
  ["an unknown error", { type: "error", code: "new", message: "m" }, "", "refused", ["m"]],
]) {
  test(`${name} is explained`, () => {
    assert.deepEqual(explain(frame, text, TEXTS), { outcome, sentences });
  });
}

test("an expired key ends the session", () => {
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

test("shares are adjacent and cover the whole prompt", () => {
  const found = segmentShares(SEGMENTS);
  assert.deepEqual(found.map((share) => share.from), [0, 0.6, 0.7, 0.9]);
  assert.ok(Math.abs(found.reduce((sum, share) => sum + share.width, 0) - 1) < 1e-9);
  assert.deepEqual(found.map((share) => share.cachedWidth), [0.6, 0.05, 0, 0]);
});

test("segments of the same kind are added up", () => {
  assert.deepEqual(totalsByKind(SEGMENTS)[1], { kind: "markers", tokens: 20, cached: 5 });
});

test("unknown cached tokens are not shown as zero", () => {
  const unknown = SEGMENTS.map((segment) => ({ ...segment, cached_tokens: null }));
  assert.ok(totalsByKind(unknown).every((total) => total.cached === null));
});
