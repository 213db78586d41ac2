import assert from "node:assert/strict";
import { test } from "node:test";

import { Debouncer, DELAY_MS } from "../../../../console/playground/debounce.js";

function fakeTimers() {
  const set = new Map();
  let num = 0;
  return {
    set,
    options: {
      set: (call, ms) => {
        set.set((num += 1), { call, ms });
        return num;
      },
      clear: (timer) => set.delete(timer),
    },
  };
}

test("only the pause after the last keystroke counts", () => {
  const { set, options } = fakeTimers();
  let num = 0;
  const pause = new Debouncer(() => (num += 1), options);
  for (let key = 0; key < 5; key += 1) pause.begin();
  assert.equal(set.size, 1);
  const [{ call, ms }] = set.values();
  call();
  assert.deepEqual([num, ms], [1, DELAY_MS]);
});

test("a stopped pause does not call back", () => {
  const { set, options } = fakeTimers();
  const pause = new Debouncer(() => assert.fail(), options);
  pause.begin();
  pause.stop();
  assert.equal(set.size, 0);
});
