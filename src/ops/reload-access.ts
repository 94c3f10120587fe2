/**
 * How `tocsin reload` finds and proves itself to the daemon: a file that only this user may read,
 * with the daemon's address on loopback and a token that is drawn at each start.
 */
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { lstatSync, mkdirSync, rmdirSync, rmSync, type Stats, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { refusal, type Refusal } from '../lib/config-fields.ts'
import { errorCode, errorMessage } from '../lib/errors.ts'
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

/**
 * What a command sends, and what a daemon begins its answer with. Neither tells the other nor the
 * token: what has taken the port of a daemon that was killed cannot pass for one.
 */
export function reloadProofs(token: string): { ofCommand: string; ofDaemon: string } {
  const prove = (who: string): string =>
    createHmac('sha256', token).update(`tocsin reload ${who}`).digest('base64url')
  return { ofCommand: prove('command'), ofDaemon: prove('daemon') }
}

/** In constant time: digests have one length whatever was sent. */
export function isSameProof(given: string, proof: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(given), digest(proof))
}

/**
 * Where the file may be unless `http.token_file` names it, the best place first; one for each
 * configuration and user. What lies in the folder for temporary files ages away.
 */
export function defaultTokenFiles(configFile: string, env: Environment): string[] {
  return inFolders(configFile, defaultFolders(env))
}

/**
 * Likewise for a command, which may have another environment than the daemon. Whoever came first
 * may have made the folder among the temporary ones: root would believe what is in it.
 */
export function likelyTokenFiles(configFile: string, env: Environment): string[] {
  const ofSession = { XDG_RUNTIME_DIR: `/run/user/${process.getuid?.()}` }
  const folders = [unitFolder, ...defaultFolders(env), ...defaultFolders(ofSession)]
  const temporary = temporaryFolder()
  const stat = lstatSync(temporary, { throwIfNoEntry: false })
  const isForeign = stat !== undefined && !isOwnFolder(stat)
  return inFolders(
    configFile,
    folders.filter((folder) => folder !== temporary || !isForeign),
  )
}

/** RuntimeDirectory= of deploy/systemd/tocsin.service. */
const unitFolder = '/run/tocsin'

type Environment = Readonly<Record<string, string | undefined>>

function inFolders(configFile: string, folders: readonly string[]): string[] {
  const name = createHash('sha256').update(resolve(configFile)).digest('hex').slice(0, 16)
  return [...new Set(folders)].map((folder) => join(folder, `${name}.reload`))
}

function defaultFolders({ RUNTIME_DIRECTORY, XDG_RUNTIME_DIR }: Environment): string[] {
  const [ofUnit = ''] = (RUNTIME_DIRECTORY ?? '').split(':')
  const ofSession = XDG_RUNTIME_DIR ?? ''
  // `sudo` may hand down what belongs to another user
  const isOurs =
    isAbsolute(ofSession) && isOwnFolder(statSync(ofSession, { throwIfNoEntry: false }))
  return [
    ...(isAbsolute(ofUnit) ? [ofUnit] : []),
    ...(isOurs ? [join(ofSession, 'tocsin')] : []),
    temporaryFolder(),
  ]
}

function temporaryFolder(): string {
  return join(tmpdir(), `tocsin-${process.getuid?.() ?? 'run'}`)
}

function isOwnFolder(stat: Stats | undefined): boolean {
  return stat?.isDirectory() === true && stat.uid === (process.getuid?.() ?? stat.uid)
}

/**
 * Writes the first of the files that can be written safely, and returns its path. Throws an Error
 * that says why there is none.
 */
export function writeReloadAccess(paths: readonly string[], access: ReloadAccess): string {
  const problems: string[] = []
  for (const path of paths) {
    try {
      writeAccess(path, access)
      return path
    } catch (error) {
      problems.push(errorMessage(error))
    }
  }
  throw new Error(problems.join('; '))
}

function writeAccess(path: string, { url, token }: ReloadAccess): void {
  const folder = dirname(path)
  // Whoever comes first can make a folder below one that everybody may write to.
  const isShared = dirname(folder) === tmpdir()
  const problem = isShared ? checkPrivateFolder(folder) : undefined
  if (problem !== undefined) throw new Error(`${folder}: ${problem}`)
  const occupant = findOccupant(path)
  if (occupant) throw new Error(`${occupant.problem}; ${occupant.remedy}`)
  const write = (): void => {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    replacePrivateFile(path, `${JSON.stringify({ url, token })}\n`)
  }
  try {
    write()
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error
    write() // another daemon that stopped has just removed the empty folder
  }
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
 * the temporary ones unless another daemon uses it.
 */
export function removeReloadAccess(path: string, token: string): void {
  const folder = dirname(path)
  try {
    if (parseAccess(readOwnFile(path, secretLimits))?.token === token) rmSync(path)
    if (dirname(folder) === tmpdir()) rmdirSync(folder)
  } catch {
    // It is gone already, or no longer ours, or the folder is not empty.
  }
}

/**
 * Returns undefined if there is no such file, or none for this user. Throws an Error if somebody else could have written
 * it, or it is none of ours.
 */
export function readReloadAccess(path: string): ReloadAccess | undefined {
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
