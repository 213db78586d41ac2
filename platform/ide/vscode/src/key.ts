/** The form of an API key, which the gateway checks before any lookup: `caret.contracts.api_key`. */

const FORM = /^(cpk_(?:live|test|svc)_[0-9A-Za-z]{8}[0-9A-Za-z]{43})([0-9A-Za-z]{6})$/;
const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const CHECKSUM_CHARS = 6;
const POLYNOMIAL = 0xedb88320;

/** Whether it may be a key: a typing error is seen here, a revoked one only by the gateway. */
export function isKey(text: string): boolean {
  const [, body, checksum] = FORM.exec(text) ?? [];
  return body !== undefined && checksumOf(body) === checksum;
}

/** CRC-32 in base 62, six characters. */
export function checksumOf(body: string): string {
  let value = crc32(Buffer.from(body));
  let digits = "";
  for (let place = 0; place < CHECKSUM_CHARS; place++) {
    digits = ALPHABET.charAt(value % ALPHABET.length) + digits;
    value = Math.floor(value / ALPHABET.length);
  }
  return digits;
}

/** zlib has one from Node 22 on; older editors bring 20. */
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
