/**
 * How `tocsin reload` finds and proves itself to the daemon: a file that only this user may read,
 * with the daemon's address on loopback and a token that is drawn at each start.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import {
  checkPrivateFolder,
  findExposure,
  readFileWithin,
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
export function isReloadToken(given: string, token: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(given), digest(token))
}

/** Where the file is unless `http.token_file` names it: one for each configuration and user. */
export function defaultTokenFile(configFile: string): string {
  const name = createHash('sha256').update(resolve(configFile)).digest('hex').slice(0, 16)
  return join(defaultFolder(), `${name}.reload`)
}

function defaultFolder(): string {
  return join(tmpdir(), `tocsin-${process.getuid?.() ?? 'run'}`)
}

/** Throws an Error that says why the file cannot be written, or not safely. */
export function writeReloadAccess(path: string, { url, token }: ReloadAccess): void {
  const folder = dirname(path)
  // A folder that everybody may write to could hold somebody else's.
  const problem = folder === defaultFolder() ? checkPrivateFolder(folder) : undefined
  if (problem !== undefined) throw new Error(`${folder}: ${problem}`)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  replacePrivateFile(path, `${JSON.stringify({ url, token })}\n`)
}

/** Removes the file unless another daemon has written its own in the meantime. */
export function removeReloadAccess(path: string, token: string): void {
  try {
    if (readFileSync(path, 'utf8').includes(token)) rmSync(path)
  } catch {
    // It is gone already.
  }
}

/**
 * Returns undefined if there is no such file. Throws an Error if somebody else could have written
 * it, or it is none of ours.
 */
export function readReloadAccess(path: string): ReloadAccess | undefined {
  let text: string
  try {
    text = readFileWithin(path, secretLimits)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
  const exposure = findExposure(path)
  if (exposure) throw new Error(`${exposure.problem}; ${exposure.remedy}`)
  return parseAccess(text, path)
}

function parseAccess(text: string, path: string): ReloadAccess {
  try {
    const { url, token } = JSON.parse(text) as Partial<ReloadAccess>
    if (typeof url === 'string' && typeof token === 'string') return { url, token }
  } catch {
    // Said below.
  }
  throw new Error(`${path} holds no address and token; restart the daemon, which writes it anew`)
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
