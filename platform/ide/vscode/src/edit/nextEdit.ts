/**
 * The next edit: a change of lines near the cursor or away from it. Requests it, draws it as a small
 * diff, goes to it, and applies it.
 */

import * as vscode from "vscode";
import type { Server } from "../server";
import { type Change, changeOf, drawingOf, isAt, isInLine, type Lines, linesOf, partOf, startOf } from "./change";

const NEXT_EDIT = "$/caret/nextEdit";
const DISPLAYED = "$/caret/editDisplayed";
const ACCEPTED = "$/caret/editAccepted";
const DISMISSED = "$/caret/editDismissed";
const MAX_DIAGNOSTICS = 16;
const SEVERITIES = ["error", "warning", "information", "hint"]; // by vscode.DiagnosticSeverity
const DEFAULT_TAB_SIZE = 4;

interface Answer {
  readonly id: string;
  readonly version: number;
  readonly edit?: { readonly range: { readonly start: LinePosition; readonly end: LinePosition }; readonly newText: string };
}

interface LinePosition {
  readonly line: number;
  readonly character: number;
}

interface ShownEdit {
  readonly id: string;
  readonly editor: vscode.TextEditor;
  readonly range: vscode.Range;
  readonly text: string;
  readonly change: Change;
}

const added = new vscode.ThemeColor("diffEditor.insertedTextBackground");
const removed = new vscode.ThemeColor("diffEditor.removedTextBackground");

export class NextEdit implements vscode.Disposable {
  private shown: ShownEdit | undefined;
  private pending: vscode.CancellationTokenSource | undefined;
  private readonly removedText = vscode.window.createTextEditorDecorationType({
    backgroundColor: removed,
    textDecoration: "line-through",
  });
  private readonly addedText = vscode.window.createTextEditorDecorationType({});
  private readonly insertion = vscode.window.createTextEditorDecorationType({
    isWholeLine: true, // a line where text is inserted
    borderColor: new vscode.ThemeColor("gitDecoration.addedResourceForeground"),
    borderStyle: "solid",
    borderWidth: "1px 0 0 0",
  });
  private readonly hint = vscode.window.createTextEditorDecorationType({});
  private readonly disposables: vscode.Disposable[];

  constructor(private readonly server: Server) {
    server.onNoSuggestion = (document) => void this.request(document, false);
    this.disposables = [
      this.removedText,
      this.addedText,
      this.insertion,
      this.hint,
      vscode.commands.registerCommand("caret.acceptEdit", () => this.accept()),
      vscode.commands.registerCommand("caret.dismissEdit", () => this.dismiss()),
      vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
        if (contentChanges.length > 0) {
          this.onChanged(document);
        }
      }),
      vscode.window.onDidChangeActiveTextEditor(() => this.dismiss()),
      vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => {
        if (textEditor === this.shown?.editor) {
          this.drawHint();
        }
      }),
    ];
  }

  dispose(): void {
    this.dismiss();
    this.disposables.forEach((disposable) => disposable.dispose());
  }

  /** Request the next edit. The server waits for a pause, and cancels the request if text changes. */
  private async request(document: vscode.TextDocument, isFollowUp: boolean): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    if (editor?.document !== document || !vscode.workspace.getConfiguration("caret").get("nextEdit", true)) {
      return;
    }
    this.pending?.cancel();
    const pending = new vscode.CancellationTokenSource();
    this.pending = pending;
    const { line, character } = editor.selection.active;
    const params = {
      uri: document.uri.toString(),
      position: { line, character },
      diagnostics: diagnosticsAt(document, line),
      isFollowUp,
    };
    try {
      const answer = await this.server.request<Answer>(NEXT_EDIT, params, pending.token);
      if (!pending.token.isCancellationRequested && answer?.edit !== undefined) {
        this.show(editor, answer.id, answer.version, answer.edit);
      }
    } catch {
      // It was cancelled, or an older language server does not know the request.
    } finally {
      pending.dispose();
    }
  }

  private show(editor: vscode.TextEditor, id: string, version: number, edit: NonNullable<Answer["edit"]>): void {
    const { document } = editor;
    if (document.version !== version || vscode.window.activeTextEditor !== editor) {
      return;
    }
    this.dismiss();
    const { start, end } = edit.range;
    const range = new vscode.Range(start.line, start.character, end.line, end.character);
    const change = changeOf(start.line, linesOf(document.getText(range)), linesOf(edit.newText));
    this.shown = { id, editor, range, text: edit.newText, change };
    void vscode.commands.executeCommand("setContext", "caret.hasEdit", true);
    this.draw();
    void this.server.notify(DISPLAYED, { id });
  }

  /** Go to the edit, or apply it if the cursor is there. */
  private async accept(): Promise<void> {
    if (this.shown === undefined) {
      return;
    }
    const { editor, change } = this.shown;
    if (isAt(change, editor.selection.active.line)) {
      await this.apply(this.shown);
      return;
    }
    const { line, character } = startOf(change, linesIn(editor.document));
    moveTo(editor, new vscode.Position(line, character));
  }

  private async apply({ id, editor, range, text, change }: ShownEdit): Promise<void> {
    this.hide();
    await this.server.notify(ACCEPTED, { id }); // first, so that the server recognises the change of the text
    if (!(await editor.edit((builder) => builder.replace(range, text)))) {
      return;
    }
    moveTo(editor, endOf(change, editor.document));
    await this.request(editor.document, true);
  }

  private dismiss(): void {
    this.pending?.cancel();
    if (this.shown !== undefined) {
      void this.server.notify(DISMISSED, { id: this.shown.id });
      this.hide();
    }
  }

  private onChanged(document: vscode.TextDocument): void {
    if (document === this.shown?.editor.document) {
      this.dismiss();
    }
  }

  private hide(): void {
    const editor = this.shown?.editor;
    this.shown = undefined;
    void vscode.commands.executeCommand("setContext", "caret.hasEdit", false);
    for (const type of [this.removedText, this.addedText, this.insertion, this.hint]) {
      editor?.setDecorations(type, []);
    }
  }

  private draw(): void {
    if (this.shown === undefined) {
      return;
    }
    const { editor, change } = this.shown;
    const tabSize = Number(editor.options.tabSize) || DEFAULT_TAB_SIZE;
    const drawing = drawingOf(change, linesIn(editor.document), tabSize);
    editor.setDecorations(
      this.removedText,
      drawing.removed.map(({ line, start, end }) => new vscode.Range(line, start, line, end)),
    );
    editor.setDecorations(
      this.addedText,
      drawing.added.map(({ line, character, text, margin }) => ({
        range: new vscode.Range(line, character, line, character),
        renderOptions: { after: { contentText: text, backgroundColor: added, margin: `0 0 0 ${margin}ch` } },
      })),
    );
    const isInsertion = change.removed.length === 0 && change.line < editor.document.lineCount;
    editor.setDecorations(this.insertion, isInsertion ? [new vscode.Range(change.line, 0, change.line, 0)] : []);
    this.drawHint();
  }

  /** Tell at the cursor what Tab does. */
  private drawHint(): void {
    if (this.shown === undefined) {
      return;
    }
    const { editor, change } = this.shown;
    const { line } = editor.selection.active;
    const end = editor.document.lineAt(line).range.end;
    const contentText = isAt(change, line)
      ? vscode.l10n.t("Tab: apply the edit")
      : vscode.l10n.t("Tab: go to the edit in line {0}", change.line + 1);
    const color = new vscode.ThemeColor("editorCodeLens.foreground");
    const after = { contentText, color, fontStyle: "italic", margin: "0 0 0 3ch" };
    editor.setDecorations(this.hint, [{ range: new vscode.Range(end, end), renderOptions: { after } }]);
  }
}

function linesIn(document: vscode.TextDocument): Lines {
  return { count: document.lineCount, at: (line) => document.lineAt(line).text };
}

function moveTo(editor: vscode.TextEditor, position: vscode.Position): void {
  editor.selection = new vscode.Selection(position, position);
  editor.revealRange(new vscode.Range(position, position), vscode.TextEditorRevealType.InCenterIfOutsideViewport);
}

/** Return the place behind the text that was added. */
function endOf(change: Change, document: vscode.TextDocument): vscode.Position {
  const [old, next] = [change.removed[0], change.added[0]];
  if (isInLine(change) && old !== undefined && next !== undefined) {
    const part = partOf(old, next);
    return new vscode.Position(change.line, part.start + part.added.length);
  }
  const line = change.line + Math.max(change.added.length - 1, 0);
  return document.validatePosition(new vscode.Position(line, change.added.at(-1)?.length ?? 0));
}

/** Return the diagnostics that are nearest to a line. */
function diagnosticsAt(document: vscode.TextDocument, line: number): object[] {
  const distance = ({ range }: vscode.Diagnostic) => Math.abs(range.start.line - line);
  return [...vscode.languages.getDiagnostics(document.uri)]
    .sort((one, other) => distance(one) - distance(other))
    .slice(0, MAX_DIAGNOSTICS)
    .map(({ range, severity, message }) => ({ line: range.start.line, severity: SEVERITIES[severity], message }));
}
