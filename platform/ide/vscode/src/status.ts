/** The status of the language server and of the active file, for the status bar. */

import { isOff } from "./settings";

/** The server sends the first six as `$/caret/status`; the extension sets the others itself. */
export type Status =
  | "ready"
  | "working"
  | "paused"
  | "offline"
  | "signed_out"
  | "over_budget"
  | "starting"
  | "stopped"
  | "missing"
  | "no_python"
  | "language_off";

export interface StatusDisplay {
  readonly icon: string; // name of a codicon
  readonly text: string;
  readonly isWarning: boolean; // the user can fix it
}

export const STATUS_DISPLAYS: Readonly<Record<Status, StatusDisplay>> = {
  ready: { icon: "chevron-up", text: "Ready", isWarning: false },
  working: { icon: "loading~spin", text: "Requesting a suggestion", isWarning: false },
  paused: { icon: "debug-pause", text: "Paused", isWarning: false },
  offline: { icon: "debug-disconnect", text: "The gateway cannot be reached", isWarning: true },
  signed_out: { icon: "key", text: "Signed out, or the key was rejected", isWarning: true },
  over_budget: { icon: "credit-card", text: "The budget is used up", isWarning: true },
  starting: { icon: "loading~spin", text: "The language server is starting", isWarning: false },
  stopped: { icon: "error", text: "The language server has stopped", isWarning: true },
  missing: { icon: "error", text: "The language server is not installed", isWarning: true },
  no_python: { icon: "error", text: "Python 3.11 or newer is missing", isWarning: true },
  language_off: { icon: "circle-slash", text: "Off for this language", isWarning: false },
};

/** Return whether there is a server to communicate with. */
export function isRunning(status: Status): boolean {
  return !["starting", "stopped", "missing", "no_python"].includes(status);
}

/** Return the status to show; a disabled language replaces only "ready" and "working". */
export function displayedStatus(status: Status, language: string | undefined, off: readonly string[]): Status {
  const isWell = status === "ready" || status === "working";
  return isWell && language !== undefined && isOff(off, language) ? "language_off" : status;
}

/** Return whether the server could not be started because a program is missing. */
export function isMissing(status: Status): boolean {
  return status === "missing" || status === "no_python";
}
