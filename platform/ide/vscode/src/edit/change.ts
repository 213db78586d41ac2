/** What an edit changes, and how it is drawn as a small diff. Pure. */

/** The lines `added` replace the lines `removed` from `line` on, which counts from 0. */
export interface Change {
  readonly line: number;
  readonly removed: readonly string[];
  readonly added: readonly string[];
}

/** `added` replaces `removed` behind `start` UTF-16 code units. */
export interface Part {
  readonly start: number;
  readonly removed: string;
  readonly added: string;
}

export interface RemovedSpan {
  readonly line: number;
  readonly start: number;
  readonly end: number;
}

/** Text that the editor draws at a place, with a distance of `margin` columns. */
export interface AddedText {
  readonly line: number;
  readonly character: number;
  readonly text: string;
  readonly margin: number;
}

export interface Drawing {
  readonly removed: readonly RemovedSpan[];
  readonly added: readonly AddedText[];
}

/** The lines of the document. */
export interface Lines {
  readonly count: number;
  readonly at: (line: number) => string;
}

const MAX_LINES = 12; // of the added block
const GAP = 3; // columns between the text and the added block
const NO_BREAK = "\u00a0"; // the editor would draw several spaces as one

/** Return the change without the lines that are the same at its start and its end. */
export function changeOf(line: number, old: readonly string[], next: readonly string[]): Change {
  const start = countCommon(old, next);
  const stop = countCommon([...old.slice(start)].reverse(), [...next.slice(start)].reverse());
  return {
    line: line + start,
    removed: old.slice(start, old.length - stop),
    added: next.slice(start, next.length - stop),
  };
}

/** Return what differs within one line. */
export function partOf(old: string, next: string): Part {
  const characters = [[...old], [...next]] as const; // not half of a surrogate pair
  const start = countCommon(...characters);
  const [oldRest, nextRest] = [characters[0].slice(start), characters[1].slice(start)];
  const stop = countCommon([...oldRest].reverse(), [...nextRest].reverse());
  return {
    start: characters[0].slice(0, start).join("").length,
    removed: oldRest.slice(0, oldRest.length - stop).join(""),
    added: nextRest.slice(0, nextRest.length - stop).join(""),
  };
}

/** Return the lines of a text, without their ends. */
export function linesOf(text: string): string[] {
  const lines = text.split(/\r\n|\r|\n/);
  return lines.at(-1) === "" ? lines.slice(0, -1) : lines;
}

export function isInLine(change: Change): boolean {
  return change.removed.length === 1 && change.added.length === 1;
}

/** Return whether a cursor in this line is at the change. */
export function isAt(change: Change, line: number): boolean {
  const first = change.removed.length === 0 ? change.line - 1 : change.line;
  return line >= first && line <= Math.max(change.line + change.removed.length - 1, change.line);
}

/** Return where the cursor goes: to the changed part of a line, or to the first word. */
export function startOf(change: Change, lines: Lines): { line: number; character: number } {
  const line = Math.min(change.line, lines.count - 1);
  const [removed, added] = [change.removed[0], change.added[0]];
  if (isInLine(change) && removed !== undefined && added !== undefined) {
    return { line, character: partOf(removed, added).start };
  }
  return { line, character: Math.max(lines.at(line).search(/\S/), 0) };
}

/**
 * Return the drawing. A change within one line is drawn in that line. Added lines are drawn as a block
 * to the right of the text, because the editor can only draw within lines that exist.
 */
export function drawingOf(change: Change, lines: Lines, tabSize: number): Drawing {
  const [removed, added] = [change.removed[0], change.added[0]];
  if (isInLine(change) && removed !== undefined && added !== undefined) {
    return inLine(change.line, partOf(removed, added));
  }
  return {
    removed: change.removed.map((text, index) => ({ line: change.line + index, start: 0, end: text.length })),
    added: block(change, lines, tabSize),
  };
}

function inLine(line: number, { start, removed, added }: Part): Drawing {
  const end = start + removed.length;
  return {
    removed: removed === "" ? [] : [{ line, start, end }],
    added: added === "" ? [] : [{ line, character: end, text: unbreakable(added), margin: 0 }],
  };
}

function block(change: Change, lines: Lines, tabSize: number): AddedText[] {
  const texts = change.added.map((text) => expand(text, tabSize));
  const room = Math.min(MAX_LINES, lines.count);
  const shown = texts.length > room ? [...texts.slice(0, room - 1), `… +${texts.length - room + 1}`] : texts;
  const width = Math.max(...shown.map((text) => text.length));
  const first = Math.max(Math.min(change.line, lines.count - shown.length), 0);
  const widths = shown.map((_, index) => expand(lines.at(first + index), tabSize).length);
  const column = Math.max(...widths) + GAP;
  return shown.map((text, index) => ({
    line: first + index,
    character: lines.at(first + index).length,
    text: unbreakable(` ${text.padEnd(width)} `),
    margin: column - (widths[index] ?? 0),
  }));
}

function expand(text: string, tabSize: number): string {
  let expanded = "";
  for (const character of text) {
    expanded += character === "\t" ? " ".repeat(tabSize - (expanded.length % tabSize)) : character;
  }
  return expanded;
}

function unbreakable(text: string): string {
  return text.replaceAll("\t", NO_BREAK.repeat(4)).replaceAll(" ", NO_BREAK);
}

function countCommon<Item>(one: readonly Item[], other: readonly Item[]): number {
  let count = 0;
  while (count < one.length && count < other.length && one[count] === other[count]) {
    count++;
  }
  return count;
}
