/** Commands that request a mode: a block, a docstring, or a chat about the selected code. */

import * as vscode from "vscode";
import type { ChatPanel } from "./chat/panel";
import { sentenceFor } from "./reasons";
import type { Server } from "./server";

const WRITE_DOCSTRING = "$/caret/writeDocstring";
const USE_MODE = "caret.useMode";
const NEWER_KEYSTROKE = "newer_keystroke";

interface Docstring {
  readonly reason?: string;
  readonly edit?: { readonly range: { readonly start: vscode.Position }; readonly newText: string };
}

export function registerModeCommands(server: Server, chat: ChatPanel): vscode.Disposable[] {
  const commands: Record<string, () => unknown> = {
    "caret.suggestBlock": () => suggest(server, "block"),
    "caret.suggestDocstring": () => suggest(server, "docstring"),
    "caret.writeDocstring": () => writeDocstring(server),
    "caret.explain": () => chat.ask("explain"),
    "caret.generateTests": () => chat.ask("tests"),
    "caret.applyProposal": () => chat.diff.apply(),
    "caret.discardProposal": () => chat.diff.discard(),
  };
  return Object.entries(commands).map(([name, run]) => vscode.commands.registerCommand(name, run));
}

/** Request a suggestion in a mode; tell why there is none. */
async function suggest(server: Server, mode: "block" | "docstring"): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (editor === undefined) {
    return;
  }
  const params = { command: USE_MODE, arguments: [editor.document.uri.toString(), mode] };
  await server.request("workspace/executeCommand", params);
  await vscode.commands.executeCommand("editor.action.inlineSuggest.hide");
  await vscode.commands.executeCommand("editor.action.inlineSuggest.trigger");
  const reason = await server.explainNoSuggestion();
  if (reason !== null && reason !== NEWER_KEYSTROKE) {
    void vscode.window.showInformationMessage(vscode.l10n.t(sentenceFor(reason)));
  }
}

async function writeDocstring(server: Server): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (editor === undefined) {
    return;
  }
  const { document } = editor;
  const version = document.version;
  const params = { uri: document.uri.toString(), line: editor.selection.active.line };
  const title = vscode.l10n.t("Writing a docstring");
  const location = vscode.ProgressLocation.Window;
  const result = await vscode.window.withProgress({ location, title }, async () =>
    server.request<Docstring>(WRITE_DOCSTRING, params),
  );
  const reason = document.version === version ? result?.reason : "file_changed";
  if (reason !== undefined || result?.edit === undefined) {
    void vscode.window.showInformationMessage(vscode.l10n.t(sentenceFor(reason ?? "refused")));
    return;
  }
  const { line, character } = result.edit.range.start;
  const edit = new vscode.WorkspaceEdit();
  edit.insert(document.uri, new vscode.Position(line, character), result.edit.newText);
  await vscode.workspace.applyEdit(edit);
}
