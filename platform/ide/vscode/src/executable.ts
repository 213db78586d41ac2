/** Finds programs, but never in the open folder, where Windows would look first. */

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
  const paths = isAbsolute(name) ? [name] : folders(machine).map((folder) => join(folder, name));
  return paths.flatMap((path) => spellings(path, machine)).find(machine.isFile) ?? null;
}

/** Names of Python, and of its launcher on Windows; the first one that is new enough is used. */
const PYTHONS = ["python3", "python", "py", "python3.14", "python3.13", "python3.12", "python3.11"];

/** Find a Python that `isNewEnough`; return null if there is none. */
export async function findPython(
  machine: Machine,
  isNewEnough: (path: string) => Promise<boolean>,
): Promise<string | null> {
  for (const name of PYTHONS) {
    const path = findExecutable(name, machine);
    if (path !== null && (await isNewEnough(path))) {
      return path;
    }
  }
  return null;
}

/** Add pipx' folder, which is missing on the PATH of editors started by a desktop. */
function folders({ platform, home, path }: Machine): string[] {
  const { delimiter, isAbsolute, join } = platform === "win32" ? win32 : posix;
  return [...path.split(delimiter).filter(isAbsolute), join(home, ".local", "bin")];
}

function spellings(path: string, { platform }: Machine): string[] {
  return platform === "win32" && !path.toLowerCase().endsWith(".exe") ? [`${path}.exe`] : [path];
}
