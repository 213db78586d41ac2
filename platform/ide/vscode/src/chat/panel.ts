/** The chat panel: its page, its conversation, and the language server that answers. */

import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import { sentenceFor } from "../reasons";
import type { Server } from "../server";
import { type ChatCommand, Conversation, type SentContext } from "./conversation";
import { Diff, type FileTarget, targetOf } from "./diff";
import type { FromPage, ToPage } from "./messages";
import { noteFor } from "./notes";
import { pageOf, TEXTS, type TextName } from "./page";

export const VIEW = "caret.chat";
const CHAT = "$/caret/chat";
const CHAT_CONTEXT = "$/caret/chatContext";
const CHAT_TEXT = "$/caret/chatText";
interface ChatEnd {
  readonly finishReason: string;
  readonly reason: string | null;
}

export class ChatPanel implements vscode.WebviewViewProvider, vscode.Disposable {
  readonly diff = new Diff();
  private readonly conversation = new Conversation();
  private readonly targets = new Map<number, FileTarget>(); // by the index of the answer's turn
  private view: vscode.WebviewView | undefined;
  private running: vscode.CancellationTokenSource | undefined;
  private number = 0; // of the newest question; parts of older answers are dropped
  private readonly disposables: vscode.Disposable[];
  private lastEditor: vscode.TextEditor | undefined; // none is active while the panel has the focus

  constructor(
    private readonly extension: vscode.Uri,
    private readonly server: Server,
  ) {
    this.lastEditor = vscode.window.activeTextEditor;
    server.onNotification(CHAT_CONTEXT, ({ token, ...context }: SentContext & { token: string }) => {
      if (token === String(this.number)) {
        this.conversation.setContext(context);
        this.post({ type: "context", context });
      }
    });
    server.onNotification(CHAT_TEXT, ({ token, text }: { token: string; text: string }) => {
      if (token === String(this.number)) {
        this.conversation.append(text);
        this.post({ type: "text", text });
      }
    });
    this.disposables = [
      this.diff,
      vscode.window.registerWebviewViewProvider(VIEW, this),
      vscode.window.onDidChangeActiveTextEditor((editor) => {
        this.lastEditor = editor ?? this.lastEditor;
      }),
    ];
  }

  resolveWebviewView(view: vscode.WebviewView): void {
    const { webview } = view;
    this.view = view;
    webview.options = {
      enableScripts: true,
      localResourceRoots: [this.file("dist"), this.file("media")],
    };
    webview.html = pageOf({
      nonce: randomBytes(16).toString("base64url"),
      cspSource: webview.cspSource,
      scriptUrl: String(webview.asWebviewUri(this.file("dist", "chat.js"))),
      styleUrl: String(webview.asWebviewUri(this.file("media", "chat.css"))),
      texts: translated(),
    });
    webview.onDidReceiveMessage(async (message: FromPage) => this.onMessage(message));
    view.onDidDispose(() => {
      this.view = undefined;
    });
  }

  /** Open the panel and ask a command's question about the selection. */
  async ask(command: ChatCommand): Promise<void> {
    const editor = vscode.window.activeTextEditor ?? this.lastEditor;
    await vscode.commands.executeCommand(`${VIEW}.focus`);
    await this.send(label(command), { command, editor, hasOpenFiles: true });
  }

  dispose(): void {
    this.running?.cancel();
    for (const disposable of this.disposables) {
      disposable.dispose();
    }
  }

  private async onMessage(message: FromPage): Promise<void> {
    switch (message.type) {
      case "ready":
        return this.postState();
      case "ask":
        return this.send(message.text, { editor: this.lastEditor, hasOpenFiles: message.hasOpenFiles });
      case "command": {
        const { command, hasOpenFiles } = message;
        return this.send(label(command), { command, editor: this.lastEditor, hasOpenFiles });
      }
      case "stop":
        this.running?.cancel();
        return;
      case "clear":
        return this.clear();
      case "copy":
        return vscode.env.clipboard.writeText(message.code);
      case "apply":
        return this.diff.show(message.code, this.targets.get(message.turn) ?? targetOf(this.lastEditor));
      case "newFile":
        return openNewFile(message.code, message.language);
    }
  }

  private async send(
    text: string,
    about: { command?: ChatCommand; editor: vscode.TextEditor | undefined; hasOpenFiles: boolean },
  ): Promise<void> {
    if (this.conversation.isBusy) {
      return;
    }
    const number = ++this.number;
    this.conversation.begin(text, about.command);
    const target = targetOf(about.editor);
    if (target !== undefined) {
      this.targets.set(this.conversation.turns.length - 1, target);
    }
    this.postState();
    this.running = new vscode.CancellationTokenSource();
    const note = await this.request(number, about.editor, about.hasOpenFiles, this.running.token);
    if (number === this.number) {
      this.conversation.end(note);
      this.post({ type: "end", note });
    }
  }

  /** Return why the answer ended early; null if it is whole. */
  private async request(
    number: number,
    editor: vscode.TextEditor | undefined,
    hasOpenFiles: boolean,
    token: vscode.CancellationToken,
  ): Promise<string | null> {
    const { start, end } = editor?.selection ?? {};
    const params = {
      token: String(number),
      turns: this.conversation.sent(),
      hasOpenFiles,
      ...(editor && { uri: editor.document.uri.toString(), selection: { start, end } }),
    };
    try {
      const ended = await this.server.request<ChatEnd>(CHAT, params, token);
      if (ended === undefined) {
        return vscode.l10n.t("The language server is not running.");
      }
      return ended.reason === null ? translatedNote(ended.finishReason) : vscode.l10n.t(sentenceFor(ended.reason));
    } catch {
      return translatedNote(token.isCancellationRequested ? "cancelled" : "failed");
    }
  }

  private clear(): void {
    this.running?.cancel();
    this.number++;
    this.targets.clear();
    this.conversation.clear();
    this.postState();
  }

  private postState(): void {
    const { turns, isBusy } = this.conversation;
    this.post({ type: "state", turns, isBusy });
  }

  private post(message: ToPage): void {
    void this.view?.webview.postMessage(message);
  }

  private file(...parts: string[]): vscode.Uri {
    return vscode.Uri.joinPath(this.extension, ...parts);
  }
}

function translated(): Record<TextName, string> {
  const entries = Object.entries(TEXTS).map(([name, text]) => [name, vscode.l10n.t(text)]);
  return Object.fromEntries(entries) as Record<TextName, string>;
}

function label(command: ChatCommand): string {
  return vscode.l10n.t(TEXTS[command]);
}

function translatedNote(finishReason: string): string | null {
  const note = noteFor(finishReason);
  return note === null ? null : vscode.l10n.t(note);
}

async function openNewFile(content: string, language: string): Promise<void> {
  const known = await vscode.languages.getLanguages();
  const options = { content, ...(known.includes(language) && { language }) };
  await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(options));
}
