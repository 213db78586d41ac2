// The results of requests: the newest with all details, the others as one line each.

import { explained, NUMBERS, shares, totals } from "./figures.js";

const MAX_LINES = 20;
const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 1000; // in units of the drawing, independent of its size on the screen

export class Results {
  constructor(page, texts) {
    this._page = page;
    this._texts = texts;
    const locale = document.documentElement.lang || undefined;
    this._whole = new Intl.NumberFormat(locale);
    this._tenths = new Intl.NumberFormat(locale, {
      minimumFractionDigits: 1,
      maximumFractionDigits: 1,
    });
    this._num = 0;
  }

  // Return the sentence to announce.
  add(frame, text) {
    const found = explained(frame, text, this._texts);
    this._num += 1;
    this._showOutcome(found);
    this._showNumbers(frame.meta);
    this._showPrompt(frame.meta && frame.meta.prompt_segments);
    this._addLine(frame, found);
    return found;
  }

  _showOutcome({ outcome, sentences }) {
    const box = this._page.outcome;
    box.dataset.outcome = outcome;
    box.replaceChildren(
      element("strong", this._texts.outcome[outcome]),
      element("span", sentences.join(" ")),
    );
    this._page.nothingYet.hidden = true;
    this._page.latest.hidden = false;
  }

  _showNumbers(meta) {
    for (const [name, kind] of NUMBERS) {
      this._page.numbers[name].textContent = this._number(meta && meta[name], kind);
    }
  }

  _number(value, kind) {
    if (value === undefined || value === null) return "–";
    return kind === "ms" ? `${this._tenths.format(value)} ms` : this._whole.format(value);
  }

  _showPrompt(prompt) {
    const segments = prompt ? prompt.segments : [];
    this._page.prompt.hidden = segments.length === 0;
    if (segments.length === 0) return;
    this._page.bar.replaceChildren(...drawn(segments));
    const isTold = segments.every((segment) => segment.cached_tokens !== null);
    this._page.cached.textContent = isTold ? this._texts.cached : this._texts.cachedUntold;
    this._page.legend.replaceChildren(...totals(segments).map((total) => this._legend(total)));
    this._page.files.textContent = this._files(prompt);
  }

  _legend({ kind, tokens, cached }) {
    const item = element("li");
    item.append(swatch(kind), element("span", this._texts.segment[kind] || kind));
    const counted = cached === null ? this._texts.tokens : this._texts.tokensCached;
    const values = { tokens: this._whole.format(tokens), cached: this._whole.format(cached || 0) };
    item.append(element("span", fill(counted, values), "soft"));
    return item;
  }

  _files(told) {
    const said = [fill(this._texts.files, { used: told.files_in_prompt, sent: told.files_sent })];
    const { files_excluded: excluded, snippets_in_prompt: found } = told;
    if (excluded > 0) said.push(fill(this._texts.excluded, { excluded }));
    if (found > 0) said.push(fill(this._texts.snippets, { found }));
    return said.join(" ");
  }

  _addLine(frame, { outcome, sentences }) {
    const line = element("tr");
    const head = element("th", `${this._num}`);
    head.scope = "row";
    const what = cell(this._texts.column.result, "");
    what.className = "play-what";
    const why = element("span", sentences.join(" "), "under");
    what.append(element("strong", this._texts.outcome[outcome]), why);
    line.append(head, what);
    for (const [name, kind] of NUMBERS) {
      const value = this._number(frame.meta && frame.meta[name], kind);
      const number = cell(this._texts.column[name], value);
      number.className = "number";
      line.append(number);
    }
    this._page.lines.prepend(line);
    while (this._page.lines.children.length > MAX_LINES) this._page.lines.lastElementChild.remove();
    this._page.table.hidden = false;
    this._page.noLines.hidden = true;
  }
}

// Draw a strip of all segments, with the cached part of each below it.
function drawn(segments) {
  return shares(segments).flatMap((share) => {
    const from = share.from * WIDTH;
    const whole = rectangle(from, share.width * WIDTH, 0, 26, `segment segment-${share.kind}`);
    const cached = rectangle(from, share.cachedWidth * WIDTH, 30, 6, "segment-cached");
    return share.cachedWidth > 0 ? [whole, cached] : [whole];
  });
}

function rectangle(x, width, y, height, name) {
  const found = document.createElementNS(SVG, "rect");
  // Slightly narrower, so that adjacent segments can be distinguished without their colours.
  const values = { x, width: Math.max(width - 1.5, 0.8), y, height, class: name };
  for (const [key, value] of Object.entries(values)) found.setAttribute(key, value);
  return found;
}

function swatch(kind) {
  const drawing = document.createElementNS(SVG, "svg");
  drawing.setAttribute("viewBox", "0 0 12 12");
  drawing.setAttribute("class", "swatch");
  drawing.setAttribute("aria-hidden", "true");
  const square = rectangle(0, 13.5, 0, 12, `segment segment-${kind}`);
  drawing.append(square);
  return drawing;
}

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className !== undefined) made.className = className;
  return made;
}

function cell(label, text) {
  const made = element("td", text);
  made.dataset.label = label;
  return made;
}

export function fill(text, values) {
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}
