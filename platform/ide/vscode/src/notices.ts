/** Notices that the server opens and closes, as work-done progresses. A user who cancels one cancels the work. */

import * as vscode from "vscode";
import type {
  ProgressToken,
  WorkDoneProgressBegin,
  WorkDoneProgressEnd,
  WorkDoneProgressReport,
} from "vscode-languageclient/node";

type Progress = WorkDoneProgressBegin | WorkDoneProgressReport | WorkDoneProgressEnd;

export class Notices {
  private readonly closeByToken = new Map<ProgressToken, () => void>();

  constructor(private readonly cancel: (token: ProgressToken) => void) {}

  onProgress(token: ProgressToken, progress: Progress): void {
    if (progress.kind === "begin") {
      this.open(token, progress.title);
    } else if (progress.kind === "end") {
      this.closeByToken.get(token)?.();
    }
  }

  /** Close all notices: their server has ended. */
  closeAll(): void {
    for (const close of this.closeByToken.values()) {
      close();
    }
  }

  private open(token: ProgressToken, title: string): void {
    const options = { location: vscode.ProgressLocation.Notification, cancellable: true, title };
    void vscode.window.withProgress(options, async (_progress, cancellation) => {
      cancellation.onCancellationRequested(() => this.cancel(token));
      await new Promise<void>((close) => this.closeByToken.set(token, close));
      this.closeByToken.delete(token);
    });
  }
}
