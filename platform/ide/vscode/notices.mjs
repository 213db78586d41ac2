// Writes the licences of the packages that the bundle holds beside it: theirs ask for that.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";

const [metafile, file] = process.argv.slice(2);
const PACKAGE = /^node_modules\/(?:.*\/node_modules\/)?(?:@[^/]+\/)?[^/]+/;

const { inputs } = JSON.parse(readFileSync(metafile, "utf-8"));
const folders = new Set(Object.keys(inputs).flatMap((input) => PACKAGE.exec(input)?.[0] ?? []));
writeFileSync(file, [...folders].sort().map(noticeOf).join("\n\n"));

function noticeOf(folder) {
  const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, "utf-8"));
  const text = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
  if (text === undefined) {
    throw new Error(`${name} has no text of its licence`);
  }
  return `${name} ${version} (${license})\n\n${readFileSync(`${folder}/${text}`, "utf-8").trim()}`;
}
