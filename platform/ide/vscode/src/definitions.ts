/** Asks the editor's other extensions where symbols are defined, and passes the places on to the server. */

import * as vscode from "vscode";
import type { Server } from "./server";

const FIND = "$/caret/findDefinitions";
const FOUND = "$/caret/definitionsFound";

interface Question {
  readonly token: number;
  readonly uri: string;
  readonly positions: readonly { readonly line: number; readonly character: number }[];
}

interface Place {
  readonly uri: string;
  readonly line: number;
}

export function answerDefinitionQuestions(server: Server): void {
  server.onNotification<Question>(FIND, async ({ token, uri, positions }) => {
    const document = vscode.Uri.parse(uri);
    const locations = await Promise.all(
      positions.map(({ line, character }) => findDefinition(document, new vscode.Position(line, character))),
    );
    await server.notify(FOUND, { token, locations });
  });
}

/** Return the first definition; null if no extension knows one. */
async function findDefinition(document: vscode.Uri, position: vscode.Position): Promise<Place | null> {
  try {
    const [first] = await vscode.commands.executeCommand<(vscode.Location | vscode.LocationLink)[]>(
      "vscode.executeDefinitionProvider",
      document,
      position,
    );
    return first === undefined ? null : placeOf(first);
  } catch {
    return null; // the file was closed, or an extension failed
  }
}

function placeOf(location: vscode.Location | vscode.LocationLink): Place {
  return "targetUri" in location
    ? { uri: location.targetUri.toString(), line: (location.targetSelectionRange ?? location.targetRange).start.line }
    : { uri: location.uri.toString(), line: location.range.start.line };
}
