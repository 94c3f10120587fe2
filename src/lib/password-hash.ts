/**
 * Passwords as scrypt hashes, in one string of the PHC format. There is one set of parameters, the
 * strongest that OWASP names for scrypt. So every check of a password costs the same, whoever it is
 * of. https://cheatsheetseries.owasp.org/cheatsheets/Password_Storage_Cheat_Sheet.html#scrypt
 */
import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto'

/** 128 MiB for each hash. */
const log2Cost = 17
const blockSize = 8
const lanes = 1

const parameters = `ln=${log2Cost},r=${blockSize},p=${lanes}`
const saltBytes = 16
const hashBytes = 32

/** OpenSSL counts its working memory as 128 bytes for each of N + p + 2 blocks, and refuses less. */
const maxmem = 128 * blockSize * (2 ** log2Cost + lanes + 2)

export const leastPasswordLength = 12

interface PasswordHash {
  salt: Buffer
  hash: Buffer
}

/** `$scrypt$ln=17,r=8,p=1$<salt>$<hash>`, both in base64 without padding. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(saltBytes)
  return formatHash({ salt, hash: await derive(password, salt) })
}

/** Takes as long for a text that is no hash as for a wrong password. */
export async function isPassword(password: string, written: string): Promise<boolean> {
  const known = parseHash(written)
  const { salt, hash } = known ?? { salt: randomBytes(saltBytes), hash: Buffer.alloc(hashBytes) }
  return timingSafeEqual(await derive(password, salt), hash) && known !== undefined
}

/** Returns what is wrong with a text as a hash, without quoting it; undefined: nothing. */
export function passwordHashProblem(written: string): string | undefined {
  const [, , given] = written.split('$')
  if (!/^\$scrypt\$ln=\d+,r=\d+,p=\d+\$/.test(written)) return 'no hash of a password'
  if (given !== parameters) return `hashed with other parameters than ${parameters}`
  return parseHash(written) === undefined ? 'a hash that is cut off or changed' : undefined
}

function parseHash(written: string): PasswordHash | undefined {
  const [, name, given, salt = '', hash = ''] = written.split('$')
  if (name !== 'scrypt' || given !== parameters) return undefined
  const parsed = { salt: Buffer.from(salt, 'base64'), hash: Buffer.from(hash, 'base64') }
  const isWhole = parsed.salt.length === saltBytes && parsed.hash.length === hashBytes
  return isWhole && formatHash(parsed) === written ? parsed : undefined
}

function formatHash({ salt, hash }: PasswordHash): string {
  const [saltText, hashText] = [salt, hash].map((bytes) =>
    bytes.toString('base64').replaceAll('=', ''),
  )
  return `$scrypt$${parameters}$${saltText}$${hashText}`
}

/** One accent may be typed as one character or as two, as keyboards differ. */
function derive(password: string, salt: Buffer): Promise<Buffer> {
  const options = { N: 2 ** log2Cost, r: blockSize, p: lanes, maxmem }
  return new Promise((resolve, reject) => {
    scrypt(password.normalize('NFC'), salt, hashBytes, options, (error, hash) => {
      if (error) reject(error)
      else resolve(hash)
    })
  })
}
