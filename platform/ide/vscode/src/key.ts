/** The format of an API key, as in `caret.contracts.api_key`. The gateway checks it first. */

const FORM = /^(cpk_(?:live|test|svc)_[0-9A-Za-z]{8}[0-9A-Za-z]{43})([0-9A-Za-z]{6})$/;
const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const CHECKSUM_CHARS = 6;
const POLYNOMIAL = 0xedb88320;

/** Return whether the text may be a key: detects typing errors, but no revoked keys. */
export function isKey(text: string): boolean {
  const [, body, checksum] = FORM.exec(text) ?? [];
  return body !== undefined && checksumOf(body) === checksum;
}

/** Return the CRC-32 in base 62, six characters. */
export function checksumOf(body: string): string {
  let value = crc32(Buffer.from(body));
  let digits = "";
  for (let place = 0; place < CHECKSUM_CHARS; place++) {
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
