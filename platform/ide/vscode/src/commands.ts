/** The extension's commands. Pausing is a command of the language server. */

import * as vscode from "vscode";
import { NEW_KEY, OWN_DATA, pageOf } from "./addresses";
import { type Bar, language, disabledLanguages } from "./bar";
import { isKey } from "./key";
import { choicesIn } from "./menu";
import { sentenceFor } from "./reasons";
import { SECRET, type Server } from "./server";
import { toggle } from "./settings";

const GREETED = "hasGreeted";
const PYTHON_DOWNLOADS = "https://www.python.org/downloads/";

export function registerCommands(
  context: vscode.ExtensionContext,
  server: Server,
  bar: Bar,
): vscode.Disposable[] {
  const commands: Record<string, () => unknown> = {
    "caret.showMenu": () => showMenu(bar),
    "caret.signIn": () => server.startSignIn(),
    "caret.enterKey": () => enterKey(context.secrets),
    "caret.signOut": () => context.secrets.delete(SECRET),
    "caret.getKey": () => openPage(NEW_KEY),
    "caret.openConsent": () => openPage(OWN_DATA),
    "caret.explainNoSuggestion": () => showNoSuggestionReason(server),
    "caret.toggleLanguage": toggleLanguage,
    "caret.openLog": () => vscode.window.showTextDocument(server.logFile),
    "caret.restart": () => server.restart(),
  };
  return Object.entries(commands).map(([name, run]) => vscode.commands.registerCommand(name, run));
}

/** Tell that the language server was not found: the one of the settings, or `caret-ls`. */
export async function showMissingServer(): Promise<void> {
  const path = vscode.l10n.t("Set the path");
  const text = vscode.l10n.t("Caret needs its language server, caret-ls, which was not found.");
  if ((await vscode.window.showErrorMessage(text, path)) === path) {
    await vscode.commands.executeCommand("workbench.action.openSettings", "caret.serverPath");
  }
}

/** Tell that there is no Python for the extension's own language server. */
export async function showMissingPython(): Promise<void> {
  const again = vscode.l10n.t("Try again");
  const install = vscode.l10n.t("Install Python");
  const path = vscode.l10n.t("Set the path");
  const text = vscode.l10n.t("Caret needs Python 3.11 or newer, which was not found on this machine.");
  const answer = await vscode.window.showErrorMessage(text, install, path, again);
  if (answer === install) {
    await vscode.env.openExternal(vscode.Uri.parse(PYTHON_DOWNLOADS));
  } else if (answer === path) {
    await vscode.commands.executeCommand("workbench.action.openSettings", "caret.pythonPath");
  } else if (answer === again) {
    await vscode.commands.executeCommand("caret.restart");
  }
}

/** Greet the user once; later the status bar shows that they are signed out. */
export async function greetOnce(context: vscode.ExtensionContext): Promise<void> {
  if (context.globalState.get(GREETED, false)) {
    return;
  }
  await context.globalState.update(GREETED, true);
  const signIn = vscode.l10n.t("Sign in");
  const enterAKey = vscode.l10n.t("Enter an API key");
  const text = vscode.l10n.t("Caret suggests code once you have signed in.");
  const answer = await vscode.window.showInformationMessage(text, signIn, enterAKey);
  if (answer !== undefined) {
    await vscode.commands.executeCommand(answer === signIn ? "caret.signIn" : "caret.enterKey");
  }
}

/** Tell that the setting alone sends nothing: the user gives consent in the console. */
export async function showConsentNotice(): Promise<void> {
  const open = vscode.l10n.t("My consent and data");
  const text = vscode.l10n.t(
    "The edited text is stored only for users who consented to content capture in the console.",
  );
  if ((await vscode.window.showInformationMessage(text, open)) === open) {
    await openPage(OWN_DATA);
  }
}

async function showMenu(bar: Bar): Promise<void> {
  const situation = { status: bar.status, language: language(), disabledLanguages: disabledLanguages() };
  const items = choicesIn(situation).map(({ icon, label, argument, command }) => ({
    label: `$(${icon}) ${vscode.l10n.t(label, argument ?? "")}`,
    command,
  }));
  const chosen = await vscode.window.showQuickPick(items, { title: "Caret" });
  if (chosen !== undefined) {
    await vscode.commands.executeCommand(chosen.command);
  }
}

/** Store the key; a listener of the secret storage sends it to the server, in each window. */
async function enterKey(secrets: vscode.SecretStorage): Promise<void> {
  const text = await vscode.window.showInputBox({
    title: vscode.l10n.t("Caret: Enter an API key"),
    prompt: vscode.l10n.t("Your API key, from the console"),
    placeHolder: "cpk_live_...",
    password: true,
    ignoreFocusOut: true,
    validateInput: (value) =>
      isKey(value.trim()) ? null : vscode.l10n.t("This is not a complete API key."),
  });
  if (text !== undefined) {
    await secrets.store(SECRET, text.trim());
  }
}

async function showNoSuggestionReason(server: Server): Promise<void> {
  const sentence = vscode.l10n.t(sentenceFor(await server.explainNoSuggestion()));
  await vscode.window.showInformationMessage(sentence);
}

/** Turn the active language off or on, in the workspace's list if it has one, otherwise in the user's. */
async function toggleLanguage(): Promise<void> {
  const activeLanguage = language();
  if (activeLanguage === undefined) {
    return;
  }
  const configuration = vscode.workspace.getConfiguration("caret");
  const isSetInWorkspace = configuration.inspect("disabledLanguages")?.workspaceValue !== undefined;
  const { Global, Workspace } = vscode.ConfigurationTarget;
  const target = isSetInWorkspace ? Workspace : Global;
  await configuration.update("disabledLanguages", toggle(disabledLanguages(), activeLanguage), target);
}

async function openPage(page: string): Promise<void> {
  const consoleUrl = vscode.workspace.getConfiguration("caret").get("consoleUrl", "");
  await vscode.env.openExternal(vscode.Uri.parse(pageOf(consoleUrl, page)));
}
