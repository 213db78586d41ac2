/**
 * The editor's settings for the language server: only those that are set, because its environment
 * and its `config.toml` provide the others.
 */

/** The values of one setting, by the place where it is set. */
export interface Inspected {
  readonly globalValue?: unknown;
  readonly workspaceValue?: unknown;
  readonly workspaceFolderValue?: unknown;
}

export type Inspect = (name: string) => Inspected | undefined;

const WORKSPACE_MAY_SET: Readonly<Record<string, string>> = {
  enabled: "enabled",
  completeInComments: "complete_in_comments",
  completeInStrings: "complete_in_strings",
  debounceMs: "debounce_ms",
  prefetch: "prefetch",
  definitions: "definitions",
  nextEdit: "next_edit",
};
// A cloned repository must not decide where code and key are sent.
const USER_ALONE_SETS: Readonly<Record<string, string>> = {
  gatewayUrl: "gateway_url",
  consoleUrl: "console_url",
  shareAcceptedText: "share_accepted_text",
};

export function serverSettings(inspect: Inspect): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const [name, serverName] of Object.entries(WORKSPACE_MAY_SET)) {
    values[serverName] = innermost(inspect(name));
  }
  for (const [name, serverName] of Object.entries(USER_ALONE_SETS)) {
    values[serverName] = inspect(name)?.globalValue;
  }
  values["disabled_languages"] = lowerCase(innermost(inspect("disabledLanguages")));
  values["excluded_globs"] = joined(inspect("excludedGlobs"));
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}

/** Add the language to the list, or remove it if it is in the list. */
export function toggle(disabledLanguages: readonly string[], language: string): string[] {
  return isOff(disabledLanguages, language)
    ? disabledLanguages.filter((disabled) => disabled.toLowerCase() !== language.toLowerCase())
    : [...disabledLanguages, language];
}

export function isOff(disabledLanguages: readonly string[], language: string): boolean {
  return disabledLanguages.some((disabled) => disabled.toLowerCase() === language.toLowerCase());
}

function innermost(inspected: Inspected | undefined): unknown {
  return inspected?.workspaceFolderValue ?? inspected?.workspaceValue ?? inspected?.globalValue;
}

/** Join all lists: a workspace may exclude more, never less. */
function joined(inspected: Inspected | undefined): unknown[] | undefined {
  const levels = [inspected?.globalValue, inspected?.workspaceValue, inspected?.workspaceFolderValue];
  const lists = levels.filter((level): level is unknown[] => Array.isArray(level));
  return lists.length > 0 ? [...new Set(lists.flat())] : undefined;
}

/** Convert languages to lower case, in which the server compares them. */
function lowerCase(value: unknown): unknown {
  return Array.isArray(value) ? value.map((item) => String(item).toLowerCase()) : value;
}
