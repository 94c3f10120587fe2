/**
 * Who may ask for a reload over HTTP: whoever reads the file that the daemon writes for its user alone,
 * with its address on loopback and a token that is drawn at each start.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { lstatSync, mkdirSync, rmdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { refusal, type Refusal } from '../lib/config-fields.ts'
import { errorCode } from '../lib/errors.ts'
import {
  checkPrivateFolder,
  readFileWithin,
  readOwnFile,
  replacePrivateFile,
  secretLimits,
} from '../lib/private-files.ts'

/** The address below which reloads are asked for. */
export const reloadPath = '/-/reload'

export interface ReloadAccess {
  /** `http://127.0.0.1:9464` */
  url: string
  token: string
}

export function createReloadToken(): string {
  return randomBytes(32).toString('base64url')
}

/** In constant time: digests have one length whatever was sent. */
export function isSameToken(given: string, token: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(given), digest(token))
}

/**
 * Where the file is unless `http.token_file` names it; one for each configuration. It lies in the
 * unit's own folder, which `systemctl reload` shares, or else in one of this user.
 */
export function defaultTokenFile(
  configFile: string,
  { RUNTIME_DIRECTORY }: Readonly<Record<string, string | undefined>>,
): string {
  const [ofUnit = ''] = (RUNTIME_DIRECTORY ?? '').split(':')
  const name = createHash('sha256').update(resolve(configFile)).digest('hex').slice(0, 16)
  return join(isAbsolute(ofUnit) ? ofUnit : folderOfUser(), `${name}.reload`)
}

function folderOfUser(): string {
  return join(tmpdir(), `tocsin-${process.getuid?.() ?? 'run'}`)
}

/** Whoever comes first can make a folder below one that everybody may write to. Throws an Error. */
function refuseForeignFolder(path: string): void {
  const folder = dirname(path)
  const problem = dirname(folder) === tmpdir() ? checkPrivateFolder(folder) : undefined
  if (problem !== undefined) throw new Error(`${folder}: ${problem}`)
}

/** Throws an Error that says why the file cannot be written safely. */
export function writeReloadAccess(path: string, { url, token }: ReloadAccess): void {
  refuseForeignFolder(path)
  const occupant = findOccupant(path)
  if (occupant) throw new Error(`${occupant.problem}; ${occupant.remedy}`)
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  replacePrivateFile(path, `${JSON.stringify({ url, token })}\n`)
}

/**
 * Returns why the daemon does not write its token there: it replaces nothing but a token of a
 * daemon. `EACCES`, in `code`: this user cannot tell.
 */
export function findOccupant(path: string): (Refusal & { code?: string }) | undefined {
  const remedy = 'name a file that nothing else uses, such as /run/tocsin/reload'
  try {
    const isFile = lstatSync(path).isFile()
    if (!isFile) return refusal(`${path} is a link, a folder or a device`, remedy)
    if (parseAccess(readFileWithin(path, secretLimits))) return undefined
  } catch (error) {
    const code = errorCode(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    if (code === 'EACCES') return { ...refusal(`${path} belongs to somebody else`, remedy), code }
  }
  return refusal(`${path} holds something else than the token of a daemon`, remedy)
}

/**
 * Removes the file unless another daemon has written its own in the meantime, and its folder among
 * temporary files once that is empty.
 */
export function removeReloadAccess(path: string, token: string): void {
  try {
    if (parseAccess(readOwnFile(path, secretLimits))?.token === token) rmSync(path)
    if (dirname(path) === folderOfUser()) rmdirSync(dirname(path))
  } catch {
    // It is gone already, no longer ours, or another daemon's file is in the folder.
  }
}

/**
 * Returns undefined if there is no such file, or none for this user. Throws an Error if somebody else could have written
 * it, or it is none of ours.
 */
export function readReloadAccess(path: string): ReloadAccess | undefined {
  refuseForeignFolder(path)
  let text: string
  try {
    text = readOwnFile(path, secretLimits)
  } catch (error) {
    const code = errorCode(error)
    if (['ENOENT', 'ENOTDIR', 'EACCES'].includes(code)) return undefined
    if (code === 'ELOOP') throw new Error(`${path} is a link`, { cause: error })
    throw error
  }
  const access = parseAccess(text)
  if (access) return access
  throw new Error(`${path} holds no address and token; restart the daemon, which writes it anew`)
}

/** Returns undefined for whatever no daemon wrote. */
function parseAccess(text: string): ReloadAccess | undefined {
  try {
    const { url, token, ...rest } = JSON.parse(text) as Record<string, unknown>
    if (typeof url !== 'string' || typeof token !== 'string') return undefined
    const isOurs = /^http:\/\/[^/@\s]+:\d+$/.test(url) && Object.keys(rest).length === 0
    return isOurs ? { url, token } : undefined
  } catch {
    return undefined
  }
}

/** Whether a peer is this machine, also as an IPv4 address within IPv6. */
export function isLoopbackPeer(address: string | undefined): boolean {
  return /^(::ffff:)?127(\.\d{1,3}){3}$|^::1$/.test(address ?? '')
}

/** The address at which a server that listens on `host` is reached from its own machine. */
export function loopbackUrl(host: string, port: number): string {
  if (host === '0.0.0.0') return `http://127.0.0.1:${port}`
  if (host === '::') return `http://[::1]:${port}`
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}
