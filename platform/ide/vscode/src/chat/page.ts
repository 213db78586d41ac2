/** The page of the chat panel. No script but ours runs in it, and it loads nothing from elsewhere. */

export interface PageParts {
  readonly nonce: string; // a new one for each page
  readonly cspSource: string;
  readonly scriptUrl: string;
  readonly styleUrl: string;
  readonly texts: Readonly<Record<TextName, string>>; // translated
}

export const TEXTS = {
  placeholder: "Ask about your code",
  send: "Send",
  stop: "Stop",
  clear: "New chat",
  openFiles: "Include open files",
  emptyTitle: "Ask Caret about your code",
  emptyHint: "Select code to ask about it. Your question is sent with the file that you are editing.",
  explain: "Explain",
  tests: "Generate tests",
  copy: "Copy",
  copied: "Copied",
  apply: "Review change",
  newFile: "New file",
  you: "You",
  waiting: "Waiting for the answer",
  withheld: "Not sent: {0}",
  lines: "lines {0} to {1}",
} as const;

export type TextName = keyof typeof TEXTS;

export function pageOf({ nonce, cspSource, scriptUrl, styleUrl, texts }: PageParts): string {
  const policy = [
    "default-src 'none'",
    `style-src ${cspSource}`,
    `script-src 'nonce-${nonce}'`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
  const t = (name: TextName) => escapeHtml(texts[name]);
  return `<!DOCTYPE html>
<html>
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width">
<link rel="stylesheet" href="${escapeHtml(styleUrl)}">
<title>Caret</title>
</head>
<body data-texts="${escapeHtml(JSON.stringify(texts))}">
<main id="turns" aria-live="polite"></main>
<section id="empty">
<h1>${t("emptyTitle")}</h1>
<p>${t("emptyHint")}</p>
<div class="row">
<button type="button" class="secondary" data-command="explain">${t("explain")}</button>
<button type="button" class="secondary" data-command="tests">${t("tests")}</button>
</div>
</section>
<form id="ask">
<textarea id="question" rows="3" placeholder="${t("placeholder")}" aria-label="${t("placeholder")}"></textarea>
<div class="row">
<label><input type="checkbox" id="open-files" checked>${t("openFiles")}</label>
<span class="fill"></span>
<button type="button" class="secondary" id="clear">${t("clear")}</button>
<button type="submit" id="send">${t("send")}</button>
<button type="button" id="stop" hidden>${t("stop")}</button>
</div>
</form>
<script nonce="${nonce}" src="${escapeHtml(scriptUrl)}"></script>
</body>
</html>`;
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
