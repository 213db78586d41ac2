import assert from "node:assert/strict";
import { test } from "node:test";

import { Connection } from "../../../../console/playground/connection.js";

// A browser in which the test decides when the console answers.
function openPlayground() {
  const world = { answers: [], beacons: [], states: [], sockets: 0 };
  globalThis.addEventListener = () => {};
  globalThis.fetch = () => new Promise((resolve) => world.answers.push(resolve));
  globalThis.WebSocket = class {
    constructor() {
      world.sockets += 1;
    }
    close() {}
  };
  Object.defineProperty(globalThis, "navigator", {
    configurable: true,
    value: { sendBeacon: (url, form) => world.beacons.push([url, form.get("issued_at")]) },
  });
  const texts = { stopped: { hour: "An hour is over." } };
  const page = { startUrl: "/start", endUrl: "/end", streamUrl: "ws://gateway", token: "t", texts };
  world.connection = new Connection(page, {
    state: (name, sentence) => world.states.push([name, sentence]),
    frame: () => {},
  });
  world.answer = async (index, issuedAt, ok = true) => {
    const answer = {
      key: "cpk_test_x",
      issued_at: issuedAt,
      expires_at: new Date(Date.now() + 3600e3).toISOString(),
      message: "Not now.",
    };
    world.answers[index]({
      ok,
      headers: { get: () => "application/json" },
      json: async () => answer,
    });
    await new Promise((resolve) => setTimeout(resolve, 0));
  };
  return world;
}

test("a start that is stopped meanwhile returns its key and opens no stream", async () => {
  const world = openPlayground();
  world.connection.start();

  world.connection.stop();
  await world.answer(0, "one");

  assert.deepEqual(world.beacons, [["/end", "one"]]);
  assert.equal(world.sockets, 0);
  assert.deepEqual(world.states.at(-1), ["stopped", ""]);
});

test("the first of two starts returns its key, whichever response comes first", async () => {
  const world = openPlayground();
  world.connection.start();
  world.connection.stop();
  world.connection.start();

  await world.answer(1, "two");
  await world.answer(0, "one");

  assert.deepEqual(world.beacons, [["/end", "one"]]);
  assert.equal(world.sockets, 1);
  assert.equal(world.states.at(-1)[0], "connecting");
  world.connection.stop();
  assert.deepEqual(world.beacons.at(-1), ["/end", "two"]);
});

test("an error after a stop is not shown", async () => {
  const world = openPlayground();
  world.connection.start();
  world.connection.stop();

  await world.answer(0, "one", false);

  assert.deepEqual(world.states.at(-1), ["stopped", ""]);
  assert.deepEqual(world.beacons, []);
});
