/** Folders and files that only this user may enter or read, and which no planted link leads elsewhere. */
import { randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  fstatSync,
  linkSync,
  lstatSync,
  mkdirSync,
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
import { basename, dirname, join } from 'node:path'
import { refusal, type Refusal } from './config-fields.ts'

/** Makes it where it is missing. What keeps it from being private, in words; undefined: nothing. */
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
    return `others may enter it (mode ${(stat.mode & 0o777).toString(8)}); run: chmod 700 ${folder}`
  return undefined
}

/** Whom the system takes a process for. */
interface ProcessIdentity {
  uid: number
  gids: readonly number[]
  /** The folder into which Docker and Podman mount secrets, each for one container: all users there are its own. */
  secretsMount: string
}

function ownIdentity(): ProcessIdentity | undefined {
  const uid = process.getuid?.()
  if (uid === undefined) return undefined // Windows has neither owners nor modes of this kind
  const gids = [process.getegid?.() ?? 0, ...(process.getgroups?.() ?? [])]
  return { uid, gids, secretsMount: '/run/secrets' }
}

/**
 * Who else may read or change a file that holds a secret, and what to do; undefined: nobody but this user and
 * root, or it is no regular file. Links are followed: mounted secrets are links, and what counts is where they
 * end. A file of root that a group of this process, or root's own, may only read is in order: so Kubernetes
 * (`fsGroup`), packages and systemd (whose access control list shows as a group's mode) hand secrets to a
 * service. What Docker mounts as a secret has the owner and mode of the host's file, or is open to all of its
 * container: neither says anything.
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
  const othersMay = accessVerbs(mode)
  const groupMay = isHandedOver ? '' : accessVerbs(mode >> 3)
  if (othersMay === '' && groupMay === '') return undefined
  const who = othersMay === '' ? `group ${gid} may ${groupMay}` : `every user may ${othersMay}`
  const bits = (mode & 0o777).toString(8).padStart(4, '0')
  const remedy = uid === self.uid ? `run: chmod 600 ${path}` : ownershipRemedy(path, self)
  return refusal(`${who} ${path} (mode ${bits})`, mountedRemedy(resolved.realPath) ?? remedy)
}

/** undefined also where Kubernetes puts another folder in its place between the two looks. */
function statFile(path: string): { stat: Stats; realPath: string } | undefined {
  try {
    const realPath = realpathSync(path)
    return { stat: statSync(realPath), realPath }
  } catch {
    return undefined // who needs the file says that it cannot be read
  }
}

function accessVerbs(bits: number): string {
  return [...(bits & 4 ? ['read'] : []), ...(bits & 2 ? ['change'] : [])].join(' and ')
}

function ownershipRemedy(path: string, { uid }: ProcessIdentity): string {
  return `run as root: chown ${uid} ${path} && chmod 600 ${path}`
}

/** Kubernetes mounts a secret as links into a folder of its own making, such as `..2026_01_31_08_00_00.1`. */
function mountedRemedy(realPath: string): string | undefined {
  if (!/\/\.\.\d{4}_/.test(realPath)) return undefined
  return 'set defaultMode: 0440 on the volume, and fsGroup in the securityContext of the pod'
}

/** Whether a socket is there that this user made. */
export function isOwnSocket(path: string): boolean {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  return stat?.isSocket() === true && stat.uid === (process.getuid?.() ?? stat.uid)
}

/** Opens a file for writing from its beginning; throws ELOOP where a link is. */
export function openPrivateFile(path: string): number {
  const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW } = constants
  return openSync(path, O_WRONLY | O_CREAT | O_TRUNC | (O_NOFOLLOW ?? 0), 0o600)
}

/** The new content is there whole or not at all. */
export function replacePrivateFile(path: string, text: string): void {
  const temporary = `${path}.${randomBytes(8).toString('hex')}`
  const file = openSync(temporary, 'wx', 0o600)
  try {
    writeFileSync(file, text)
  } finally {
    closeSync(file)
  }
  renameSync(temporary, path)
}

/** Text files that an operator names: none is waited for, and none fills the memory. */

export interface FileLimits {
  maxBytes: number
  /** Whatever can be read will do, a pipe as shells make them of `<(…)` too; it is waited for. */
  mayWait?: boolean
}

/** Keys, passwords and addresses. */
export const secretLimits: FileLimits = { maxBytes: 64 * 1024 }

/** Bundles of certificate authorities. */
export const certificateLimits: FileLimits = { maxBytes: 4 * 1024 * 1024 }

/**
 * The text of a file. Links are followed: mounted secrets are links. Throws an Error whose `code` is the
 * system's, `SPECIAL` for a pipe or a device, or `TOO_LONG`.
 */
export function readFileWithin(path: string, { maxBytes, mayWait }: FileLimits): string {
  // a pipe that nobody writes to would hold up the whole process
  const file = openSync(path, constants.O_RDONLY | (mayWait ? 0 : constants.O_NONBLOCK))
  try {
    const status = fstatSync(file)
    const isUsual = status.isFile() || status.isDirectory() // reading a directory says so itself
    if (!isUsual && !mayWait) throw fileError(path, 'SPECIAL', 'is no regular file')
    const text = readWithin(file, maxBytes)
    if (text === undefined)
      throw fileError(path, 'TOO_LONG', `is longer than ${maxBytes / 1024} KiB`)
    return text
  } finally {
    closeSync(file)
  }
}

function fileError(path: string, code: 'SPECIAL' | 'TOO_LONG', what: string): Error {
  return Object.assign(new Error(`the file ${path} ${what}`), { code })
}

/** undefined: there is more. A device has no size that could be asked for beforehand. */
function readWithin(file: number, maxBytes: number): string | undefined {
  const chunks: Buffer[] = []
  let bytes = 0
  for (;;) {
    const chunk = Buffer.alloc(64 * 1024)
    const read = readSync(file, chunk)
    if (read === 0) return Buffer.concat(chunks).toString('utf8')
    bytes += read
    if (bytes > maxBytes) return undefined
    chunks.push(chunk.subarray(0, read))
  }
}

/**
 * Files by which processes of one machine agree on who may work in a folder: `<path>.<n>`, each naming its
 * owner. Whoever makes the next number is the owner; nobody may while an owner lives. A number
 * is never used twice, so that who looked long ago cannot take what another has by now.
 */

/** By path: the file that is ours. */
const heldLocks = new Map<string, string>()

/** Whether it is ours from now on; that of an owner which is gone is taken over. Throws where the folder takes no file. */
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
    linkSync(ownFile, next) // fails where it exists, at one instant
    heldLocks.set(path, next)
    for (const { file } of files) rmSync(file, { force: true })
    return true
  } catch {
    return false
  } finally {
    rmSync(ownFile, { force: true })
  }
}

/** Only one's own; an empty file keeps the number. */
export function dropLockFile(path: string): void {
  const file = heldLocks.get(path)
  if (file === undefined) return
  heldLocks.delete(path)
  try {
    truncateSync(file)
  } catch {
    // somebody has deleted it, or the folder
  }
}

/** Who keeps us out, for whoever wants to look: a path. */
export function findLockFile(path: string): string {
  return lockFiles(path).at(-1)?.file ?? path
}

/** Lowest number first; 0: as versions up to 0.4 wrote it. */
function lockFiles(path: string): { file: string; number: number }[] {
  const name = basename(path)
  return readdirSync(dirname(path))
    .filter((file) => file.startsWith(name) && /^(\.\d{1,15})?$/.test(file.slice(name.length)))
    .map((file) => ({
      file: join(dirname(path), file),
      number: Number(file.slice(name.length + 1)),
    }))
    .toSorted((a, b) => a.number - b.number)
}

function isAbandoned(file: string): boolean {
  const [owner = '', birth = ''] = readFileSync(file, 'utf8').split(' ')
  const pid = Number(owner)
  // our own id without our knowledge: of an earlier container
  if (!Number.isInteger(pid) || pid <= 0 || pid === process.pid) return true
  try {
    process.kill(pid, 0) // only asks whether there is such a process
    return birth !== '' && birth !== processStartTime(pid) // another one may have its id by now
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ESRCH'
  }
}

/** When a process began, since the machine did; '' where the system does not tell it as Linux does. */
function processStartTime(pid: number): string {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return text.slice(text.lastIndexOf(')') + 2).split(' ')[19] ?? '' // its name may hold anything
  } catch {
    return ''
  }
}
