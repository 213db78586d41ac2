/**
 * Caret in VS Code and related editors: the language server `caret-ls` makes suggestions.
 *
 * extension (events) > server, bar, commands (the editor's interface) > the rest (pure)
 */

import * as vscode from "vscode";
import { registerAssist } from "./assist";
import { Bar } from "./bar";
import { ChatPanel } from "./chat/panel";
import { greetOnce, registerCommands, sayMissing, sayNoPython, sayWhereConsentIsGiven } from "./commands";
import { answerDefinitionQuestions } from "./definitions";
import { NextEdit } from "./edit/nextEdit";
import { SECRET, Server } from "./server";
import type { Status } from "./status";

let server: Server | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const bar = new Bar();
  const made = new Server(context, (status) => {
    bar.show(status);
    notice(context, status);
  });
  server = made;
  answerDefinitionQuestions(made);
  const chat = new ChatPanel(context.extensionUri, made);
  context.subscriptions.push(bar, ...registerCommands(context, made, bar), ...watch(context, made, bar));
  context.subscriptions.push(chat, ...registerAssist(made, chat), new NextEdit(made));
  await made.restart();
}

/** Stop the server; the editor waits for this, so no process outlives it. */
export async function deactivate(): Promise<void> {
  await server?.stop();
}

function notice(context: vscode.ExtensionContext, status: Status): void {
  if (status === "missing") {
    void sayMissing();
  } else if (status === "no_python") {
    void sayNoPython();
  } else if (status === "signed_out") {
    void greetOnce(context);
  }
}

function watch(context: vscode.ExtensionContext, server: Server, bar: Bar): vscode.Disposable[] {
  return [
    vscode.workspace.onDidChangeConfiguration(async (change) => configured(change, server, bar)),
    vscode.window.onDidChangeActiveTextEditor(() => bar.look()),
    vscode.window.onDidChangeTextEditorSelection(async ({ textEditor }) => server.select(textEditor)),
    context.secrets.onDidChange(async ({ key }) => {
      if (key === SECRET) {
        await server.signIn();
      }
    }),
  ];
}

async function configured(
  change: vscode.ConfigurationChangeEvent,
  server: Server,
  bar: Bar,
): Promise<void> {
  if (!change.affectsConfiguration("caret")) {
    return;
  }
  bar.look();
  const isOfServer = ["caret.serverPath", "caret.pythonPath"].some((name) => change.affectsConfiguration(name));
  await (isOfServer ? server.restart() : server.configure());
  const shares = vscode.workspace.getConfiguration("caret").get("shareAcceptedText", false);
  if (shares && change.affectsConfiguration("caret.shareAcceptedText")) {
    await sayWhereConsentIsGiven();
  }
}
