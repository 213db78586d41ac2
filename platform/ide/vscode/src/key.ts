/** The format of an API key, as in `caret.contracts.api_key`. */

const KEY_PATTERN = /^(cpk_(?:live|test|svc)_[0-9A-Za-z]{8}[0-9A-Za-z]{43})([0-9A-Za-z]{6})$/;
const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const CHECKSUM_CHARS = 6;
const POLYNOMIAL = 0xedb88320;

/** Return whether the text may be a key: this detects typing errors, but not revoked keys. */
export function isKey(text: string): boolean {
  const [, body, checksum] = KEY_PATTERN.exec(text) ?? [];
  return body !== undefined && checksumOf(body) === checksum;
}

/** Return the CRC-32 in base 62, six characters. */
export function checksumOf(body: string): string {
  let value = crc32(Buffer.from(body));
  let digits = "";
  for (let index = 0; index < CHECKSUM_CHARS; index++) {
    digits = ALPHABET.charAt(value % ALPHABET.length) + digits;
    value = Math.floor(value / ALPHABET.length);
  }
  return digits;
}

/** Node's zlib has this from version 22 on, but older editors contain version 20. */
function crc32(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) {
      crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1;
    }
  }
  return (crc ^ 0xffffffff) >>> 0;
}
