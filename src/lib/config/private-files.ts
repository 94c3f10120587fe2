/**
 * Files and folders that only this user may enter or read, limits for reading files that an
 * operator names, and lock files. No planted link leads a write elsewhere.
 */
import { randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { errorCode, quoteForShell } from '../errors.ts'
import { refusal, type Refusal } from './config-fields.ts'

/**
 * Creates the folder if it is missing. Returns why it is not private, in words; undefined: it is.
 */
export function checkPrivateFolder(folder: string): string | undefined {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const stat = lstatSync(folder)
  if (stat.isSymbolicLink()) return 'it is a symbolic link; name the folder itself'
  if (!stat.isDirectory()) return 'it is no folder; name another'
  const ownUid = process.getuid?.()
  if (ownUid === undefined) return undefined // Windows has neither owners nor modes of this kind
  if (stat.uid !== ownUid)
    return `it belongs to user ${stat.uid}, and this is user ${ownUid}; name a folder of your own`
  if ((stat.mode & 0o077) !== 0)
    return `others may enter it (mode ${(stat.mode & 0o777).toString(8)}); run: chmod 700 ${quoteForShell(folder)}`
  return undefined
}

/** The user and groups that the system checks for a process. */
interface ProcessIdentity {
  uid: number
  gids: readonly number[]
  /**
   * The folder into which Docker and Podman mount secrets, each for one container, whose users may
   * all read it.
   */
  secretsMount: string
}

function ownIdentity(): ProcessIdentity | undefined {
  const uid = process.getuid?.()
  if (uid === undefined) return undefined // Windows has neither owners nor modes of this kind
  const gids = [process.getegid?.() ?? 0, ...(process.getgroups?.() ?? [])]
  return { uid, gids, secretsMount: '/run/secrets' }
}

/**
 * Returns who else may read or change a file that holds a secret, and what to do; undefined: only
 * this user and root, or it is not a regular file. Links are followed: mounted secrets are links,
 * and only the target counts. A file of root is accepted if root's own group or a group of this
 * process may only read it: Kubernetes (`fsGroup`), packages and systemd (whose access control list
 * shows as a group's mode) pass secrets to a service in this way. What Docker mounts as a secret
 * has the owner and mode of the host's file, or is open to the whole container: neither says
 * anything.
 */
export function findExposure(path: string, self = ownIdentity()): Refusal | undefined {
  const resolved = statFile(path)
  if (!resolved?.stat.isFile() || self === undefined) return undefined
  if (dirname(resolved.realPath) === self.secretsMount) return undefined
  const { uid, gid, mode } = resolved.stat
  if (uid !== self.uid && uid !== 0) {
    return refusal(
      `${path} belongs to user ${uid}, and this is user ${self.uid}`,
      ownershipRemedy(path, self),
    )
  }
  const isHandedOver = uid === 0 && [0, ...self.gids].includes(gid) && (mode & 0o020) === 0
  const problem = findOpenness(path, resolved.stat, isHandedOver)
  if (problem === undefined) return undefined
  const remedy =
    uid === self.uid ? `run: chmod 600 ${quoteForShell(path)}` : ownershipRemedy(path, self)
  return refusal(problem, mountedRemedy(resolved.realPath) ?? remedy)
}

/** What others than the owner may do, in words. */
function findOpenness(path: string, { gid, mode }: Stats, mayGroup: boolean): string | undefined {
  const othersMay = accessVerbs(mode)
  const groupMay = mayGroup ? '' : accessVerbs(mode >> 3)
  if (othersMay === '' && groupMay === '') return undefined
  const who = othersMay === '' ? `group ${gid} may ${groupMay}` : `every user may ${othersMay}`
  return `${who} ${path} (mode ${(mode & 0o777).toString(8).padStart(4, '0')})`
}

/** Returns undefined also if Kubernetes replaces the folder between the two calls. */
function statFile(path: string): { stat: Stats; realPath: string } | undefined {
  try {
    const realPath = realpathSync(path)
    return { stat: statSync(realPath), realPath }
  } catch {
    return undefined // the reader of the file reports that it cannot be read
  }
}

function accessVerbs(bits: number): string {
  return [...(bits & 4 ? ['read'] : []), ...(bits & 2 ? ['change'] : [])].join(' and ')
}

function ownershipRemedy(path: string, { uid }: ProcessIdentity): string {
  const file = quoteForShell(path)
  return `run as root: chown ${uid} ${file} && chmod 600 ${file}`
}

/**
 * Kubernetes mounts a secret as links into a folder of its own, such as `..2026_01_31_08_00_00.1`.
 */
function mountedRemedy(realPath: string): string | undefined {
  if (!/\/\.\.\d{4}_/.test(realPath)) return undefined
  return 'set defaultMode: 0440 on the volume, and fsGroup in the securityContext of the pod'
}

/** Whether there is a socket that this user made. */
export function isOwnSocket(path: string): boolean {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  return stat?.isSocket() === true && stat.uid === (process.getuid?.() ?? stat.uid)
}

const maxLogBytes = 2 ** 20

/**
 * Opens a file for writing at its end, which tells why a former process ended; from its beginning
 * once it is long. Throws ELOOP if it is a link.
 */
export function openPrivateLog(path: string): number {
  const { O_WRONLY, O_CREAT, O_APPEND, O_NOFOLLOW } = constants
  const file = openSync(path, O_WRONLY | O_CREAT | O_APPEND | (O_NOFOLLOW ?? 0), 0o600)
  if (fstatSync(file).size > maxLogBytes) ftruncateSync(file)
  return file
}

/** Replaces a file atomically: the new content is there whole or not at all. */
export function replacePrivateFile(path: string, content: string | Uint8Array): void {
  writeThenPlace(path, content, renameSync)
}

/** Creates a file whole or not at all; throws EEXIST if something has its name. */
export function createPrivateFile(path: string, content: string | Uint8Array): void {
  writeThenPlace(path, content, linkSync)
}

function writeThenPlace(
  path: string,
  content: string | Uint8Array,
  place: (temporary: string, path: string) => void,
): void {
  const temporary = `${path}.${randomBytes(8).toString('hex')}`
  const file = openSync(temporary, 'wx', 0o600)
  try {
    try {
      writeFileSync(file, content)
    } finally {
      closeSync(file)
    }
    place(temporary, path)
  } finally {
    rmSync(temporary, { force: true })
  }
}

/** Limits for text files that an operator names: reading must neither block nor fill the memory. */
export interface FileLimits {
  maxBytes: number
  /** Accept anything readable, including a pipe as shells make it for `<(…)`, and wait for it. */
  mayWait?: boolean
}

/** Keys, passwords and addresses. */
export const secretLimits: FileLimits = { maxBytes: 64 * 1024 }

/** Bundles of certificate authorities. */
export const certificateLimits: FileLimits = { maxBytes: 4 * 1024 * 1024 }

/**
 * Reads the text of a file. Links are followed: mounted secrets are links. Throws an Error whose
 * `code` is the system's, `SPECIAL` for a pipe or a device, or `TOO_LONG`.
 */
export function readFileWithin(path: string, { maxBytes, mayWait }: FileLimits): string {
  // A pipe that nobody writes to would block the whole process.
  const file = openSync(path, constants.O_RDONLY | (mayWait ? 0 : constants.O_NONBLOCK))
  try {
    const status = fstatSync(file)
    // reading a directory fails with its own error
    const isUsual = status.isFile() || status.isDirectory()
    if (!isUsual && !mayWait) throw fileError(path, 'SPECIAL', 'is no regular file')
    return readWithin(file, { path, maxBytes })
  } finally {
    closeSync(file)
  }
}

function fileError(path: string, code: 'SPECIAL' | 'TOO_LONG', what: string): Error {
  return Object.assign(new Error(`the file ${path} ${what}`), { code })
}

/** Throws `TOO_LONG` if there is more. The size is not asked beforehand, because a device has none. */
function readWithin(file: number, { path, maxBytes }: { path: string; maxBytes: number }): string {
  const chunks: Buffer[] = []
  let bytes = 0
  for (;;) {
    const chunk = Buffer.alloc(64 * 1024)
    const read = readSync(file, chunk)
    if (read === 0) return Buffer.concat(chunks).toString('utf8')
    bytes += read
    if (bytes > maxBytes) {
      throw fileError(path, 'TOO_LONG', `is longer than ${maxBytes / 1024} KiB`)
    }
    chunks.push(chunk.subarray(0, read))
  }
}

/**
 * Creates a folder among the temporary files that `removeLeftFolders` knows as this process's.
 * Nobody else may enter it.
 */
export function createProcessFolder(name: string): string {
  const owner = `${process.pid}.${processStartTime(process.pid)}`
  return mkdtempSync(join(tmpdir(), `${name}-${owner}-`))
}

/** Removes what processes of this user created that no longer run: one that is killed removes nothing. */
export function removeLeftFolders(name: string): void {
  for (const entry of readdirSync(tmpdir())) {
    const [, pid, birth] = new RegExp(`^${name}-(\\d+)\\.(\\d*)-\\w{6}$`).exec(entry) ?? []
    if (pid === undefined || birth === undefined || !isGone(Number(pid), birth)) continue
    const folder = join(tmpdir(), entry)
    const stat = lstatSync(folder, { throwIfNoEntry: false })
    const isOwn = stat?.isDirectory() === true && stat.uid === (process.getuid?.() ?? stat.uid)
    if (isOwn) rmSync(folder, { recursive: true, force: true })
  }
}

/** The lock files that this process holds, by path. */
const heldLocks = new Map<string, string>()

/**
 * Takes the lock on a path. Lock files are `<path>.<n>`, each naming its owner: whoever creates the
 * next number is the owner, which fails while an owner lives; a lock whose owner is gone is taken
 * over. A number is never used twice, so that a process which looked earlier cannot take what
 * another holds by now. Returns whether the lock was taken. Throws if the folder takes no file.
 */
export function takeLockFile(path: string): boolean {
  if (heldLocks.has(path)) return false
  const ownFile = `${path}-${randomBytes(8).toString('hex')}`
  writeFileSync(ownFile, `${process.pid} ${processStartTime(process.pid)}`, {
    mode: 0o600,
    flag: 'wx',
  })
  try {
    const files = lockFiles(path)
    if (!files.every(({ file }) => isAbandoned(file))) return false
    const next = `${path}.${(files.at(-1)?.number ?? 0) + 1}`
    linkSync(ownFile, next) // fails atomically if it exists
    heldLocks.set(path, next)
    for (const { file } of files) rmSync(file, { force: true })
    return true
  } catch {
    return false
  } finally {
    rmSync(ownFile, { force: true })
  }
}

/** Releases the lock only if this process holds it; an empty file keeps the number. */
export function dropLockFile(path: string): void {
  const file = heldLocks.get(path)
  if (file === undefined) return
  heldLocks.delete(path)
  try {
    truncateSync(file)
  } catch {
    // The file or the folder was deleted.
  }
}

/** The file of the current lock, for people who look for its owner. */
export function findLockFile(path: string): string {
  return lockFiles(path).at(-1)?.file ?? path
}

/** Lowest number first. */
function lockFiles(path: string): { file: string; number: number }[] {
  const name = basename(path)
  return readdirSync(dirname(path))
    .filter((file) => file.startsWith(name) && /^\.\d{1,15}$/.test(file.slice(name.length)))
    .map((file) => ({
      file: join(dirname(path), file),
      number: Number(file.slice(name.length + 1)),
    }))
    .toSorted((a, b) => a.number - b.number)
}

function isAbandoned(file: string): boolean {
  const [owner = '', birth = ''] = readFileSync(file, 'utf8').split(' ')
  const pid = Number(owner)
  // Our own process id in a lock that we do not hold is that of an earlier container.
  return !Number.isInteger(pid) || pid <= 0 || pid === process.pid || isGone(pid, birth)
}

/** `birth`: its `processStartTime`; '' if that is not known. */
function isGone(pid: number, birth: string): boolean {
  try {
    process.kill(pid, 0) // only tests whether the process exists
    return birth !== '' && birth !== processStartTime(pid) // another process may have its id by now
  } catch (error) {
    return errorCode(error) === 'ESRCH'
  }
}

/** When a process began, since the machine's start; '' if the system has no /proc as Linux does. */
function processStartTime(pid: number): string {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // the process name before may hold anything
    return text.slice(text.lastIndexOf(')') + 2).split(' ')[19] ?? ''
  } catch {
    return ''
  }
}
