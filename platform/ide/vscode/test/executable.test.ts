import assert from "node:assert/strict";
import { test } from "node:test";
import { findExecutable, findPython, type Machine } from "../src/executable";

const machine = (files: string[], changed: Partial<Machine> = {}): Machine => ({
  platform: "linux",
  home: "/home/ada",
  path: "/usr/bin:/opt/bin",
  isFile: (path) => files.includes(path),
  ...changed,
});

test("a name is found on the path", () => {
  assert.equal(findExecutable("caret-ls", machine(["/opt/bin/caret-ls"])), "/opt/bin/caret-ls");
});

test("pipx' folder is looked in though the path lacks it", () => {
  const there = "/home/ada/.local/bin/caret-ls";

  assert.equal(findExecutable("caret-ls", machine([there])), there);
});

test("the folder that is open is never looked in", () => {
  const found = findExecutable("caret-ls", machine(["./caret-ls", "caret-ls"], { path: ".::bin" }));

  assert.equal(found, null);
});

test("an absolute path is taken as it is", () => {
  assert.equal(findExecutable("/srv/caret-ls", machine(["/srv/caret-ls"])), "/srv/caret-ls");
});

test("Windows' programs end in exe", () => {
  const windows = machine(["C:\\Tools\\caret-ls.exe"], { platform: "win32", path: "C:\\Tools" });

  assert.equal(findExecutable("caret-ls", windows), "C:\\Tools\\caret-ls.exe");
});

test("the first Python that is new enough is found", async () => {
  const files = ["/usr/bin/python3", "/opt/bin/python3.12"];

  const found = await findPython(machine(files), async (path) => path !== "/usr/bin/python3");

  assert.equal(found, "/opt/bin/python3.12");
});

test("no Python is found if all are too old", async () => {
  assert.equal(await findPython(machine(["/usr/bin/python3"]), async () => false), null);
});
