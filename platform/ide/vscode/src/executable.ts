/** Finds a program, but never in the open folder, where Windows would look first. */

import { posix, win32 } from "node:path";

export interface Machine {
  readonly platform: NodeJS.Platform;
  readonly home: string;
  readonly path: string; // the environment variable PATH
  readonly isFile: (path: string) => boolean;
}

/** Find `name`, an absolute path or a name to search for; return null if there is none. */
export function findExecutable(name: string, machine: Machine): string | null {
  const { isAbsolute, join } = machine.platform === "win32" ? win32 : posix;
  const places = isAbsolute(name) ? [name] : folders(machine).map((folder) => join(folder, name));
  return places.flatMap((place) => spellings(place, machine)).find(machine.isFile) ?? null;
}

/** Add pipx' folder, which is missing on the PATH of editors started by a desktop. */
function folders({ platform, home, path }: Machine): string[] {
  const { delimiter, isAbsolute, join } = platform === "win32" ? win32 : posix;
  return [...path.split(delimiter).filter(isAbsolute), join(home, ".local", "bin")];
}

function spellings(place: string, { platform }: Machine): string[] {
  return platform === "win32" && !place.toLowerCase().endsWith(".exe") ? [`${place}.exe`] : [place];
}
