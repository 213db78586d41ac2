/**
 * Caret in VS Code and related editors: the language server `caret-ls` makes suggestions.
 *
 * `extension` creates the objects and passes on the editor's events. Modules that do not import `vscode` are pure,
 * except for the script of the chat panel's page (`webview`).
 */

import * as vscode from "vscode";
import { registerModeCommands } from "./assist";
import { Bar } from "./bar";
import { ChatPanel } from "./chat/panel";
import { greetOnce, registerCommands, showMissingServer, showMissingPython, showConsentNotice } from "./commands";
import { answerDefinitionQuestions } from "./definitions";
import { NextEdit } from "./edit/nextEdit";
import { SECRET, Server } from "./server";
import type { Status } from "./status";

let server: Server | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const bar = new Bar();
  const newServer = new Server(context, (status) => {
    bar.show(status);
    showNotice(context, status);
  });
  server = newServer;
  answerDefinitionQuestions(newServer);
  const chat = new ChatPanel(context.extensionUri, newServer);
  context.subscriptions.push(bar, ...registerCommands(context, newServer, bar), ...registerListeners(context, newServer, bar));
  context.subscriptions.push(chat, ...registerModeCommands(newServer, chat), new NextEdit(newServer));
  await newServer.restart();
}

/** Stop the server; the editor waits for this, so no process outlives it. */
export async function deactivate(): Promise<void> {
  await server?.stop();
}

function showNotice(context: vscode.ExtensionContext, status: Status): void {
  if (status === "missing") {
    void showMissingServer();
  } else if (status === "no_python") {
    void showMissingPython();
  } else if (status === "signed_out") {
    void greetOnce(context);
  }
}

function registerListeners(context: vscode.ExtensionContext, server: Server, bar: Bar): vscode.Disposable[] {
  return [
    vscode.workspace.onDidChangeConfiguration(async (change) => onConfigurationChanged(change, server, bar)),
    vscode.window.onDidChangeActiveTextEditor(() => bar.update()),
    vscode.window.onDidChangeTextEditorSelection(async ({ textEditor }) => server.select(textEditor)),
    context.secrets.onDidChange(async ({ key }) => {
      if (key === SECRET) {
        await server.signIn();
      }
    }),
  ];
}

async function onConfigurationChanged(
  change: vscode.ConfigurationChangeEvent,
  server: Server,
  bar: Bar,
): Promise<void> {
  if (!change.affectsConfiguration("caret")) {
    return;
  }
  bar.update();
  const needsRestart = ["caret.serverPath", "caret.pythonPath"].some((name) => change.affectsConfiguration(name));
  await (needsRestart ? server.restart() : server.configure());
  const shares = vscode.workspace.getConfiguration("caret").get("shareAcceptedText", false);
  if (shares && change.affectsConfiguration("caret.shareAcceptedText")) {
    await showConsentNotice();
  }
}
