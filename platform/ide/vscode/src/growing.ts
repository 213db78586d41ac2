/** Shows more of the visible suggestion as it arrives. */

import * as vscode from "vscode";

/** Requests suggestions again, and selects the next one. It runs only while one is visible. */
const SHOW_NEXT = "editor.action.inlineSuggest.showNext";
/** VS Code requests again at the same place only if there are other providers than before. */
const NEW_PROVIDER: vscode.InlineCompletionItemProvider = { provideInlineCompletionItems: () => [] };

/** Older editors do not look at providers (see `NEW_PROVIDER`). They get whole suggestions. */
const FIRST_MINOR_VERSION = 104;
export const CAN_GROW = Number(vscode.version.split(".")[1]) >= FIRST_MINOR_VERSION;

interface Requested {
  readonly document: vscode.TextDocument;
  readonly position: vscode.Position;
  readonly version: number;
}

/**
 * VS Code's stable interface has no event for a suggestion that has changed. A new request keeps the
 * visible suggestion first in the list and adds the longer one behind it, so selecting the next one
 * replaces the visible text without hiding it.
 */
export class GrowingSuggestion {
  private requested: Requested | undefined; // the editor's last request
  private isShowing = false;
  private hasGrown = false; // since the command began
  private provider: vscode.Disposable | undefined;

  onRequested(document: vscode.TextDocument, position: vscode.Position): void {
    this.requested = { document, position, version: document.version };
  }

  /** Show the longer text. One command at a time: a second one would select the old text again. */
  async onGrown(uri: string): Promise<void> {
    this.hasGrown = true;
    if (this.isShowing) {
      return;
    }
    this.isShowing = true;
    try {
      while (this.hasGrown && this.isAtCursor(uri)) {
        this.hasGrown = false;
        this.replaceProvider();
        await vscode.commands.executeCommand(SHOW_NEXT);
      }
    } finally {
      this.isShowing = false;
    }
  }

  private replaceProvider(): void {
    const previous = this.provider;
    this.provider = vscode.languages.registerInlineCompletionItemProvider({ pattern: "**" }, { ...NEW_PROVIDER });
    previous?.dispose();
  }

  /** Return whether the cursor is still where the suggestion was requested. */
  private isAtCursor(uri: string): boolean {
    const editor = vscode.window.activeTextEditor;
    return (
      editor !== undefined &&
      uri === editor.document.uri.toString() &&
      editor.document === this.requested?.document &&
      editor.document.version === this.requested.version &&
      editor.selection.active.isEqual(this.requested.position)
    );
  }
}
