/** Where a program is. Never in the folder that is open: Windows would look there first. */

import { posix, win32 } from "node:path";

export interface Machine {
  readonly platform: NodeJS.Platform;
  readonly home: string;
  readonly path: string; // the variable PATH
  readonly isFile: (path: string) => boolean;
}

/** `name`: an absolute path, or a name to look for; null: there is none. */
export function findExecutable(name: string, machine: Machine): string | null {
  const { isAbsolute, join } = machine.platform === "win32" ? win32 : posix;
  const places = isAbsolute(name) ? [name] : folders(machine).map((folder) => join(folder, name));
  return places.flatMap((place) => spellings(place, machine)).find(machine.isFile) ?? null;
}

/** Editors that a desktop has started do not know of pipx' folder. */
function folders({ platform, home, path }: Machine): string[] {
  const { delimiter, isAbsolute, join } = platform === "win32" ? win32 : posix;
  return [...path.split(delimiter).filter(isAbsolute), join(home, ".local", "bin")];
}

function spellings(place: string, { platform }: Machine): string[] {
  return platform === "win32" && !place.toLowerCase().endsWith(".exe") ? [`${place}.exe`] : [place];
}
