// Writes the licences of the bundled packages to a file, as these licences require.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";

const [file, ...metafiles] = process.argv.slice(2);
const PACKAGE = /^node_modules\/(?:.*\/node_modules\/)?(?:@[^/]+\/)?[^/]+/;

const inputs = metafiles.flatMap((metafile) => Object.keys(JSON.parse(readFileSync(metafile, "utf-8")).inputs));
const folders = new Set(inputs.flatMap((input) => PACKAGE.exec(input)?.[0] ?? []));
writeFileSync(file, [...folders].sort().map(noticeOf).join("\n\n"));

function noticeOf(folder) {
  const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, "utf-8"));
  const licenceFile = readdirSync(folder).find((name) => /^licen[cs]e/i.test(name));
  if (licenceFile === undefined) {
    throw new Error(`${name} has no licence text`);
  }
  return `${name} ${version} (${license})\n\n${readFileSync(`${folder}/${licenceFile}`, "utf-8").trim()}`;
}
