/** Changes that a chat proposes: where they belong, and the text that they make. Pure. */

/** The code that a question was about: it is found again although the file has changed since. */
export interface Target {
  readonly start: number; // offset in the file when the question was asked
  readonly text: string; // "": the cursor
}

/** Return the target's offset in the current text; null: the code has changed or is ambiguous. */
export function locate(current: string, target: Target): number | null {
  if (target.text === "") {
    return null;
  }
  if (current.startsWith(target.text, target.start)) {
    return target.start;
  }
  const first = current.indexOf(target.text);
  return first >= 0 && current.indexOf(target.text, first + 1) < 0 ? first : null;
}

/** Return the code with the indentation and the line end of the code that it replaces. */
export function fit(code: string, replaced: string): string {
  const text = code.replace(/\s+$/, "");
  const missing = missingIndent(text, replaced);
  const lines = text.split("\n").map((line) => (line.trim() === "" ? "" : missing + line));
  const body = lines.join("\n") + (/\r?\n$/.exec(replaced)?.[0] ?? "");
  return replaced.includes("\r\n") ? body.replace(/\r?\n/g, "\r\n") : body;
}

function missingIndent(code: string, replaced: string): string {
  const wanted = indentOf(replaced);
  const present = indentOf(code);
  return wanted.startsWith(present) && replaced.startsWith(wanted) ? wanted.slice(present.length) : "";
}

function indentOf(text: string): string {
  const line = text.split("\n").find((candidate) => candidate.trim() !== "") ?? "";
  return /^[ \t]*/.exec(line)?.[0] ?? "";
}
