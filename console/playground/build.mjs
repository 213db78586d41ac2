// Bundles main.js into the given folder, and writes the licences of the bundled packages beside it.
// platform/scripts/build_playground installs the locked packages and runs this.

import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { build } from "esbuild";

const folder = process.argv[2];
// With this digest, a test without npm can check that the bundle matches the committed sources.
const sources = createHash("sha256");
for (const name of readdirSync(".").sort()) {
  if (/\.(js|mjs|json)$/.test(name)) sources.update(readFileSync(name));
}
const { metafile } = await build({
  entryPoints: ["main.js"],
  outfile: join(folder, "playground.js"),
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  charset: "utf8",
  legalComments: "none", // they are in the licence file
  banner: {
    js:
      "/* Made by platform/scripts/build_playground; licences: playground.licenses.txt\n" +
      `   sources: ${sources.digest("hex")} */`,
  },
  metafile: true,
  logLevel: "warning",
});

const packages = new Set();
for (const path of Object.keys(metafile.inputs)) {
  const match = /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path);
  if (match) packages.add(match[1]);
}
const texts = [...packages].sort().map((name) => {
  const packageFolder = join("node_modules", name);
  const { version, license } = JSON.parse(readFileSync(join(packageFolder, "package.json"), "utf8"));
  const file = readdirSync(packageFolder).find((name) => /^licen[cs]e/i.test(name));
  if (file === undefined) throw new Error(`${name} has no licence file`);
  return `${name} ${version} (${license})\n\n${readFileSync(join(packageFolder, file), "utf8").trim()}\n`;
});
writeFileSync(join(folder, "playground.licenses.txt"), texts.join(`\n${"-".repeat(72)}\n\n`));
