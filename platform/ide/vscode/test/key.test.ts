import assert from "node:assert/strict";
import { test } from "node:test";
import { checksumOf, isKey } from "../src/key";

const BODY = `cpk_live_${"a".repeat(8)}${"B".repeat(43)}`;

test("the checksum is the gateway's", () => {
  assert.equal(checksumOf("123456789"), "3jZRME");
});

test("a complete key is valid", () => {
  assert.ok(isKey(BODY + checksumOf(BODY)));
});

test("a key with a typing error is invalid", () => {
  assert.ok(!isKey(BODY.replace("B", "b") + checksumOf(BODY)));
});

test("a part of a key is invalid", () => {
  assert.ok(!isKey(BODY));
});
