/** Pages of the console that the extension opens. What is decided there it never decides itself. */

export const OWN_DATA = "account/data"; // consent, with the tenant's wording, and receipts
export const NEW_KEY = "keys/new";

export function pageOf(consoleUrl: string, page: string): string {
  return `${consoleUrl.replace(/\/+$/, "")}/${page}`;
}
