// Shows requests: the newest one in full, earlier ones as rows of a table.

import { explain, NUMBERS, segmentShares, totalsByKind } from "./completion_meta.js";

const MAX_ROWS = 20;
const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 1000; // in units of the drawing, for any size on the screen

export class RequestList {
  constructor(page, texts) {
    this._page = page;
    this._texts = texts;
    const locale = document.documentElement.lang || undefined;
    this._integers = new Intl.NumberFormat(locale);
    this._decimals = new Intl.NumberFormat(locale, {
      minimumFractionDigits: 1,
      maximumFractionDigits: 1,
    });
    this._num = 0;
  }

  // Returns the explanation, to be announced.
  add(frame, text) {
    const explanation = explain(frame, text, this._texts);
    this._num += 1;
    this._showOutcome(explanation);
    this._showNumbers(frame.meta);
    this._showPrompt(frame.meta && frame.meta.prompt_segments);
    this._addRow(frame, explanation);
    return explanation;
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
    return kind === "ms" ? `${this._decimals.format(value)} ms` : this._integers.format(value);
  }

  _showPrompt(prompt) {
    const segments = prompt ? prompt.segments : [];
    this._page.prompt.hidden = segments.length === 0;
    if (segments.length === 0) return;
    this._page.bar.replaceChildren(...drawBar(segments));
    const isKnown = segments.every((segment) => segment.cached_tokens !== null);
    this._page.cached.textContent = isKnown ? this._texts.cached : this._texts.cachedUnknown;
    this._page.legend.replaceChildren(...totalsByKind(segments).map((total) => this._legendItem(total)));
    this._page.files.textContent = this._describeFiles(prompt);
  }

  _legendItem({ kind, tokens, cached }) {
    const item = element("li");
    item.append(swatch(kind), element("span", this._texts.segment[kind] || kind));
    const counted = cached === null ? this._texts.tokens : this._texts.tokensCached;
    const values = { tokens: this._integers.format(tokens), cached: this._integers.format(cached || 0) };
    item.append(element("span", fill(counted, values), "soft"));
    return item;
  }

  _describeFiles(prompt) {
    const sentences = [fill(this._texts.files, { used: prompt.files_in_prompt, sent: prompt.files_sent })];
    const { files_excluded: excluded, snippets_in_prompt: found } = prompt;
    if (excluded > 0) sentences.push(fill(this._texts.excluded, { excluded }));
    if (found > 0) sentences.push(fill(this._texts.snippets, { found }));
    return sentences.join(" ");
  }

  _addRow(frame, { outcome, sentences }) {
    const row = element("tr");
    const head = element("th", `${this._num}`);
    head.scope = "row";
    const result = cell(this._texts.column.result, "");
    result.className = "play-result";
    const explanation = element("span", sentences.join(" "), "under");
    result.append(element("strong", this._texts.outcome[outcome]), explanation);
    row.append(head, result);
    for (const [name, kind] of NUMBERS) {
      const value = this._number(frame.meta && frame.meta[name], kind);
      const number = cell(this._texts.column[name], value);
      number.className = "number";
      row.append(number);
    }
    this._page.rows.prepend(row);
    while (this._page.rows.children.length > MAX_ROWS) this._page.rows.lastElementChild.remove();
    this._page.table.hidden = false;
    this._page.noRows.hidden = true;
  }
}

// Draws a bar of all segments, and below each one its cached part.
function drawBar(segments) {
  return segmentShares(segments).flatMap((share) => {
    const from = share.from * WIDTH;
    const whole = rectangle(from, share.width * WIDTH, 0, 26, `segment segment-${share.kind}`);
    const cached = rectangle(from, share.cachedWidth * WIDTH, 30, 6, "segment-cached");
    return share.cachedWidth > 0 ? [whole, cached] : [whole];
  });
}

function rectangle(x, width, y, height, name) {
  const shape = document.createElementNS(SVG, "rect");
  // Slightly narrower, so that neighbours are distinct without their colours.
  const values = { x, width: Math.max(width - 1.5, 0.8), y, height, class: name };
  for (const [key, value] of Object.entries(values)) shape.setAttribute(key, value);
  return shape;
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
  const node = document.createElement(name);
  if (text !== undefined) node.textContent = text;
  if (className !== undefined) node.className = className;
  return node;
}

function cell(label, text) {
  const node = element("td", text);
  node.dataset.label = label;
  return node;
}

export function fill(text, values) {
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}
