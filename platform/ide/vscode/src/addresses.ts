/** Pages of the console that the extension opens. What users decide there cannot be decided in the editor. */

export const OWN_DATA = "account/my-data"; // consent, with the tenant's consent text, and consent receipts
export const NEW_KEY = "account/keys/new";

export function pageOf(consoleUrl: string, page: string): string {
  return `${consoleUrl.replace(/\/+$/, "")}/${page}`;
}
