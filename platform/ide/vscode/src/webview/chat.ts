/** The script of the chat panel's page. It shows a copy of the state, which the extension sends. */

import MarkdownIt from "markdown-it";
import type { Turn } from "../chat/conversation";
import type { FromPage, ToPage } from "../chat/messages";
import type { TextName } from "../chat/page";

declare function acquireVsCodeApi(): { postMessage(message: FromPage): void };

const api = acquireVsCodeApi();
const texts = JSON.parse(document.body.dataset["texts"] ?? "{}") as Record<TextName, string>;
// HTML in an answer stays text; links open in the browser; images are not loaded.
const markdown = new MarkdownIt({ html: false, linkify: false }).disable(["image", "html_block", "html_inline"]);
const list = byId("turns");
const empty = byId("empty");
const question = byId("question") as HTMLTextAreaElement;
const openFiles = byId("open-files") as HTMLInputElement;

let turns: Turn[] = [];
let isBusy = false;
let isDrawPending = false;

markdown.renderer.rules.fence = (tokens, index) => {
  const { content = "", info = "" } = tokens[index] ?? {};
  const language = markdown.utils.escapeHtml(info.trim().split(/\s+/)[0] ?? "");
  return `<figure data-language="${language}"><figcaption>${language}</figcaption><pre><code>${markdown.utils.escapeHtml(content)}</code></pre></figure>`;
};

function byId(id: string): HTMLElement {
  const element = document.getElementById(id);
  if (element === null) {
    throw new Error(id);
  }
  return element;
}

function createElement(tag: string, className: string, text = ""): HTMLElement {
  const element = document.createElement(tag);
  element.className = className;
  element.textContent = text;
  return element;
}

function fillIn(text: string, ...values: (string | number)[]): string {
  return text.replace(/\{(\d)\}/g, (_, index: string) => String(values[Number(index)] ?? ""));
}

function draw(): void {
  const isAtEnd = list.scrollTop + list.clientHeight >= list.scrollHeight - 24;
  while (list.children.length > turns.length) {
    list.lastElementChild?.remove();
  }
  turns.forEach((turn, index) => {
    const isChanging = index >= turns.length - 2;
    if (index >= list.children.length) {
      list.append(article(turn, index));
    } else if (isChanging) {
      list.children[index]?.replaceWith(article(turn, index));
    }
  });
  empty.hidden = turns.length > 0;
  byId("clear").hidden = turns.length === 0;
  byId("send").hidden = isBusy;
  byId("stop").hidden = !isBusy;
  if (isAtEnd) {
    list.scrollTop = list.scrollHeight;
  }
}

/** Draw at most once a frame, however many parts of an answer have arrived. */
function drawSoon(): void {
  if (!isDrawPending) {
    isDrawPending = true;
    requestAnimationFrame(() => {
      isDrawPending = false;
      draw();
    });
  }
}

function article(turn: Turn, index: number): HTMLElement {
  const element = createElement("article", turn.role);
  element.append(createElement("h2", "", turn.role === "user" ? texts.you : "Caret"));
  if (turn.role === "user") {
    element.append(createElement("p", "question", turn.text));
    element.append(...contextOf(turn));
  } else {
    const isWaiting = isBusy && index === turns.length - 1 && turn.text === "";
    element.append(isWaiting ? createElement("p", "waiting", texts.waiting) : answer(turn, index));
    if (turn.note !== undefined) {
      element.append(createElement("p", "note", turn.note));
    }
  }
  return element;
}

function contextOf(turn: Turn): HTMLElement[] {
  const { context } = turn;
  if (context === undefined) {
    return [];
  }
  const row = createElement("p", "context");
  context.files.forEach((file, index) => {
    const [first, last] = (index === 0 && context.selection) || [];
    const lines = first === undefined ? "" : `, ${fillIn(texts.lines, first, last ?? first)}`;
    row.append(createElement("span", "chip", file + lines));
  });
  if (context.withheld !== null) {
    row.append(createElement("span", "chip withheld", fillIn(texts.withheld, context.withheld)));
  }
  return [row];
}

function answer(turn: Turn, index: number): HTMLElement {
  const element = createElement("div", "answer");
  element.innerHTML = markdown.render(turn.text);
  for (const figure of element.querySelectorAll("figure")) {
    const code = figure.querySelector("code")?.textContent ?? "";
    const language = figure.dataset["language"] ?? "";
    figure.querySelector("figcaption")?.append(
      createElement("span", "fill"),
      button(texts.copy, (pressed) => {
        api.postMessage({ type: "copy", code });
        pressed.textContent = texts.copied;
      }),
      button(texts.newFile, () => api.postMessage({ type: "newFile", code, language })),
      button(texts.apply, () => api.postMessage({ type: "apply", code, turn: index })),
    );
  }
  return element;
}

function button(text: string, run: (pressed: HTMLElement) => void): HTMLElement {
  const element = createElement("button", "link", text) as HTMLButtonElement;
  element.type = "button";
  element.addEventListener("click", () => run(element));
  return element;
}

function ask(): void {
  const text = question.value.trim();
  if (text !== "" && !isBusy) {
    api.postMessage({ type: "ask", text, hasOpenFiles: openFiles.checked });
    question.value = "";
  }
}

window.addEventListener("message", ({ data }: MessageEvent<ToPage>) => {
  if (data.type === "state") {
    turns = data.turns.map((turn) => ({ ...turn }));
    isBusy = data.isBusy;
    list.replaceChildren();
    draw();
    list.scrollTop = list.scrollHeight;
    return;
  }
  const newestAnswer = turns.at(-1);
  const newestQuestion = turns.at(-2);
  if (data.type === "context" && newestQuestion !== undefined) {
    newestQuestion.context = data.context;
  } else if (data.type === "text" && newestAnswer !== undefined) {
    newestAnswer.text += data.text;
  } else if (data.type === "end") {
    isBusy = false;
    if (newestAnswer !== undefined && data.note !== null) {
      newestAnswer.note = data.note;
    }
  }
  drawSoon();
});
byId("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  ask();
});
question.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    ask();
  }
});
byId("stop").addEventListener("click", () => api.postMessage({ type: "stop" }));
byId("clear").addEventListener("click", () => api.postMessage({ type: "clear" }));
for (const element of document.querySelectorAll<HTMLElement>("[data-command]")) {
  element.addEventListener("click", () => {
    const command = element.dataset["command"] === "tests" ? "tests" : "explain";
    api.postMessage({ type: "command", command, hasOpenFiles: openFiles.checked });
  });
}
api.postMessage({ type: "ready" });
