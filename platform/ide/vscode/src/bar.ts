/** The item in the status bar. */

import * as vscode from "vscode";
import { isRunning, STATUS_DISPLAYS, displayedStatus, type Status } from "./status";

export class Bar implements vscode.Disposable {
  status: Status = "starting";
  private readonly item = vscode.window.createStatusBarItem("caret", vscode.StatusBarAlignment.Right);

  constructor() {
    this.item.name = "Caret";
    this.item.command = "caret.showMenu";
    this.show(this.status);
    this.item.show();
  }

  show(status: Status): void {
    this.status = status;
    void vscode.commands.executeCommand("setContext", "caret.status", status);
    void vscode.commands.executeCommand("setContext", "caret.isRunning", isRunning(status));
    this.update();
  }

  /** Update the item for another file or other settings. */
  update(): void {
    const { icon, text: label, isWarning } = STATUS_DISPLAYS[displayedStatus(this.status, language(), disabledLanguages())];
    const text = vscode.l10n.t(label);
    const color = isWarning ? new vscode.ThemeColor("statusBarItem.warningBackground") : undefined;
    this.item.text = `$(${icon}) Caret`;
    this.item.tooltip = `Caret: ${text}`;
    this.item.accessibilityInformation = { label: `Caret: ${text}` };
    this.item.backgroundColor = color;
  }

  dispose(): void {
    this.item.dispose();
  }
}

/** Return the language of the active editor's file. */
export function language(): string | undefined {
  return vscode.window.activeTextEditor?.document.languageId;
}

export function disabledLanguages(): readonly string[] {
  return vscode.workspace.getConfiguration("caret").get<string[]>("disabledLanguages", []);
}
