/** The process of the language server and its LSP client. */

import { execFile } from "node:child_process";
import { statSync } from "node:fs";
import { homedir } from "node:os";
import { promisify } from "node:util";
import * as vscode from "vscode";
import { LanguageClient, type LanguageClientOptions, State, type StaticFeature } from "vscode-languageclient/node";
import { findExecutable, findPython, type Machine } from "./executable";
import { CAN_GROW, GrowingSuggestion } from "./growing";
import { Notices } from "./notices";
import { serverSettings } from "./settings";
import type { Status } from "./status";

export const SECRET = "apiKey";
const STATUS = "$/caret/status";
const SUGGESTION_GROWN = "$/caret/suggestionGrown";
const SUGGESTION_DISPLAYED = "$/caret/suggestionDisplayed";
const SELECTION_CHANGED = "$/caret/selectionChanged";
const CANCEL_PROGRESS = "window/workDoneProgress/cancel";
const SIGN_IN = "$/caret/signIn";
const SIGNED_IN = "$/caret/signedIn";
const START_SIGN_IN = "caret.startSignIn";
const EXPLAIN_NO_SUGGESTION = "$/caret/explainNoSuggestion";
const BUNDLED = "server/caret-ls.pyz"; // built by platform/scripts/build_clients
const CHECK_VERSION = "import sys; sys.exit(sys.version_info < (3, 11))";
const PYTHON_TIMEOUT_MS = 10_000;
const NOT_REQUESTED = "not_requested";
const FILES = [{ scheme: "file" }, { scheme: "untitled" }];

/** A program and its arguments. */
type Command = readonly [string, ...string[]];

/**
 * Tells the server that the editor stores the key of a sign-in, shows suggestions as they grow, finds
 * definitions, and shows a cancellable progress as a notice.
 */
const CAPABILITIES: StaticFeature = {
  fillClientCapabilities: (capabilities) => {
    capabilities.experimental = {
      ...(capabilities.experimental as object),
      caretSecretStorage: true,
      caretProgressNotices: true,
      caretGrowingSuggestions: CAN_GROW,
      caretDefinitions: true,
    };
  },
  initialize: () => {},
  getState: () => ({ kind: "static" }),
  clear: () => {},
};

export class Server {
  /** Called if there is no suggestion at the cursor. */
  onNoSuggestion: (document: vscode.TextDocument) => void = () => {};
  private client: LanguageClient | undefined;
  private key: string | undefined;
  private lifecycle: Promise<void> = Promise.resolve(); // runs starts and stops one after the other
  private uriWithSelection: string | undefined; // of the file that was last reported to have one
  private readonly growing = new GrowingSuggestion();
  private readonly notices = new Notices((token) => void this.notify(CANCEL_PROGRESS, { token }));
  private readonly listeners = new Map<string, (params: never) => void>(); // by notification

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly onStatus: (status: Status) => void,
  ) {}

  get logFile(): vscode.Uri {
    return vscode.Uri.joinPath(this.context.logUri, "caret-ls.log");
  }

  /** Restart the server. Never rejects: errors become a status. */
  restart(): Promise<void> {
    this.lifecycle = this.lifecycle.then(() => this.end()).then(() => this.begin());
    return this.lifecycle;
  }

  stop(): Promise<void> {
    this.lifecycle = this.lifecycle.then(() => this.end());
    return this.lifecycle;
  }

  async configure(): Promise<void> {
    await this.notify("workspace/didChangeConfiguration", { settings: { caret: readSettings() } });
  }

  /** Send the stored key to the server, or null if there is none. */
  async signIn(): Promise<void> {
    this.key = await this.context.secrets.get(SECRET);
    await this.notify(SIGN_IN, { key: this.key ?? null });
  }

  /** Let the server open the console, where the user confirms a code. */
  async startSignIn(): Promise<void> {
    const params = { command: START_SIGN_IN, arguments: [] };
    await this.client?.sendRequest("workspace/executeCommand", params);
  }

  async select(editor: vscode.TextEditor): Promise<void> {
    const uri = editor.document.uri.toString();
    const hasSelection = editor.selections.some((selection) => !selection.isEmpty);
    if (hasSelection === (this.uriWithSelection === uri)) {
      return;
    }
    this.uriWithSelection = hasSelection ? uri : undefined;
    await this.notify(SELECTION_CHANGED, { uri, hasSelection });
  }

  /** Call the listener for each notification of this kind, of every server to come. */
  onNotification<Params>(method: string, listener: (params: Params) => void): void {
    this.listeners.set(method, listener);
  }

  /** Send a request; return undefined if no server is running. Rejects if the token cancels it. */
  async request<Result>(
    method: string,
    params: object,
    token?: vscode.CancellationToken,
  ): Promise<Result | undefined> {
    return this.client?.isRunning() ? this.client.sendRequest<Result>(method, params, token) : undefined;
  }

  /** Send a notification; do nothing if no server is running. */
  async notify(method: string, params: object): Promise<void> {
    if (this.client?.isRunning()) {
      await this.client.sendNotification(method, params);
    }
  }

  /** Return why there was no suggestion; null if there was one. */
  async explainNoSuggestion(): Promise<string | null> {
    if (!this.client?.isRunning()) {
      return NOT_REQUESTED;
    }
    const answer = await this.client.sendRequest<{ reason: string | null }>(EXPLAIN_NO_SUGGESTION, {});
    return answer.reason;
  }

  private async begin(): Promise<void> {
    this.onStatus("starting");
    const command = await findCommand(this.context);
    if (typeof command === "string") {
      this.onStatus(command);
      return;
    }
    this.key = await this.context.secrets.get(SECRET);
    this.client = this.makeClient(command);
    try {
      await this.client.start();
    } catch {
      this.onStatus("stopped"); // the client has shown the reason
    }
  }

  private async end(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    this.uriWithSelection = undefined;
    this.notices.closeAll();
    try {
      await client?.dispose();
    } catch {
      // It did not start, or has already ended.
    }
  }

  private makeClient([command, ...commandArgs]: Command): LanguageClient {
    const args = [...commandArgs, "--log", this.logFile.fsPath];
    const run = { command, args, options: { cwd: homedir() } };
    const options: LanguageClientOptions = {
      documentSelector: FILES,
      // Called again when the client restarts a crashed server.
      initializationOptions: () => ({ ...readSettings(), ...(this.key && { api_key: this.key }) }),
      middleware: {
        // The client itself would show a progress in the status bar, where it cannot be cancelled.
        handleWorkDoneProgress: (token, progress) => this.notices.onProgress(token, progress),
        provideInlineCompletionItems: async (document, position, context, token, next) => {
          this.growing.onRequested(document, position);
          const result = await next(document, position, context, token);
          const items = Array.isArray(result) ? result : (result?.items ?? []);
          if (items.length > 0) {
            void this.notify(SUGGESTION_DISPLAYED, { uri: document.uri.toString() });
          } else if (!token.isCancellationRequested) {
            this.onNoSuggestion(document);
          }
          return result;
        },
      },
    };
    const client = new LanguageClient("caret", "Caret", run, options);
    client.onNotification(STATUS, ({ status }: { status: Status }) => this.onStatus(status));
    client.registerFeature(CAPABILITIES);
    client.onNotification(SUGGESTION_GROWN, ({ uri }: { uri: string }) => this.growing.onGrown(uri));
    client.onNotification(SIGNED_IN, async ({ key }: { key: string }) =>
      this.context.secrets.store(SECRET, key),
    );
    for (const [method, listener] of this.listeners) {
      client.onNotification(method, listener as (params: object) => void);
    }
    client.onDidChangeState(({ newState }) => {
      if (newState === State.Stopped && client === this.client) {
        this.notices.closeAll();
        this.onStatus("stopped");
      }
    });
    return client;
  }
}

function readSettings(): Record<string, unknown> {
  const configuration = vscode.workspace.getConfiguration("caret");
  return serverSettings((name) => configuration.inspect(name));
}

/** Return the command of the language server, or a status that tells what is missing. */
async function findCommand(context: vscode.ExtensionContext): Promise<Command | "missing" | "no_python"> {
  const machine: Machine = { platform: process.platform, home: homedir(), path: process.env["PATH"] ?? "", isFile };
  const configuration = vscode.workspace.getConfiguration("caret");
  const bundled = context.asAbsolutePath(BUNDLED);
  const serverPath = configuration.get("serverPath", "") || (isFile(bundled) ? "" : "caret-ls");
  if (serverPath !== "") {
    const path = findExecutable(serverPath, machine);
    return path === null ? "missing" : [path];
  }
  const pythonPath = configuration.get("pythonPath", "");
  const python =
    pythonPath === "" ? await findPython(machine, isNewEnough) : findExecutable(pythonPath, machine);
  return python === null ? "no_python" : [python, "-I", bundled];
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

async function isNewEnough(python: string): Promise<boolean> {
  try {
    await promisify(execFile)(python, ["-I", "-c", CHECK_VERSION], { timeout: PYTHON_TIMEOUT_MS });
    return true;
  } catch {
    return false;
  }
}
