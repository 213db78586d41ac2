/** Shows a proposed change as a diff, and applies it if the code is still there. */

import { basename } from "node:path";
import * as vscode from "vscode";
import { fit, locate, type Target } from "./proposal";

const SCHEME = "caret-proposal";

export interface FileTarget extends Target {
  readonly uri: vscode.Uri;
}

interface Proposal {
  readonly target: FileTarget;
  readonly code: string;
}

export class Diff implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly texts = new Map<string, string>(); // by the proposal's URI
  private readonly registered = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);
  private proposal: Proposal | undefined; // the newest
  private number = 0;

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.toString()) ?? "";
  }

  /** Show the file beside a copy that has the change. Without selected code, insert at the cursor. */
  async show(code: string, target: FileTarget | undefined): Promise<void> {
    const place = target?.text ? target : atCursor(target?.uri);
    if (place === undefined) {
      void vscode.window.showWarningMessage(vscode.l10n.t("Open the file that the change belongs to."));
      return;
    }
    const document = await vscode.workspace.openTextDocument(place.uri);
    const text = applyTo(document, place, code);
    if (text === null) {
      showChangedMessage();
      return;
    }
    this.proposal = { target: place, code };
    const proposedUri = place.uri.with({ scheme: SCHEME, query: String(++this.number) });
    this.texts.clear(); // only the newest proposal can be applied
    this.texts.set(proposedUri.toString(), text);
    const title = vscode.l10n.t("{0}: proposed change", basename(place.uri.path));
    await vscode.commands.executeCommand("vscode.diff", place.uri, proposedUri, title, { preview: true });
  }

  /** Change the file as proposed, although it may have changed elsewhere since. */
  async apply(): Promise<void> {
    const proposal = this.proposal;
    if (proposal === undefined) {
      return;
    }
    const { target, code } = proposal;
    const document = await vscode.workspace.openTextDocument(target.uri);
    const start = offsetOf(document.getText(), target);
    if (start === null) {
      showChangedMessage();
      return;
    }
    const edit = new vscode.WorkspaceEdit();
    const range = new vscode.Range(
      document.positionAt(start),
      document.positionAt(start + target.text.length),
    );
    edit.replace(target.uri, range, fit(code, target.text));
    await vscode.workspace.applyEdit(edit);
    await this.discard();
  }

  /** Close the diff. */
  async discard(): Promise<void> {
    this.proposal = undefined;
    const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
    const diffs = tabs.filter(
      ({ input }) => input instanceof vscode.TabInputTextDiff && input.modified.scheme === SCHEME,
    );
    await vscode.window.tabGroups.close(diffs);
  }

  dispose(): void {
    this.registered.dispose();
  }
}

/** Return the selection of an editor, or its cursor, as the code that a question is about. */
export function targetOf(editor: vscode.TextEditor | undefined): FileTarget | undefined {
  if (editor === undefined) {
    return undefined;
  }
  const { document, selection } = editor;
  return { uri: document.uri, start: document.offsetAt(selection.start), text: document.getText(selection) };
}

function atCursor(uri: vscode.Uri | undefined): FileTarget | undefined {
  const editor = vscode.window.visibleTextEditors.find(
    ({ document }) => document.uri.toString() === uri?.toString(),
  );
  return targetOf(editor ?? vscode.window.activeTextEditor);
}

function applyTo(document: vscode.TextDocument, target: FileTarget, code: string): string | null {
  const text = document.getText();
  const start = offsetOf(text, target);
  if (start === null) {
    return null;
  }
  return text.slice(0, start) + fit(code, target.text) + text.slice(start + target.text.length);
}

function offsetOf(text: string, target: FileTarget): number | null {
  return target.text === "" ? Math.min(target.start, text.length) : locate(text, target);
}

function showChangedMessage(): void {
  void vscode.window.showWarningMessage(
    vscode.l10n.t("The code has changed since the question. Select it and ask again."),
  );
}
