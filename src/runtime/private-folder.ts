/** Folders and files that only this user may enter or read, and which no planted link leads elsewhere. */
import { randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  lstatSync,
  mkdirSync,
  openSync,
  realpathSync,
  renameSync,
  statSync,
  writeFileSync,
  type Stats,
} from 'node:fs'
import { dirname } from 'node:path'
import { refusal, type Refusal } from './config-fields.ts'

/** Makes it where it is missing. What keeps it from being private, in words; undefined: nothing. */
export function troubleOfPrivateFolder(folder: string): string | undefined {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const stat = lstatSync(folder)
  if (stat.isSymbolicLink()) return 'it is a symbolic link; name the folder itself'
  if (!stat.isDirectory()) return 'it is no folder; name another'
  const own = process.getuid?.()
  if (own === undefined) return undefined // Windows has neither owners nor modes of this kind
  if (stat.uid !== own)
    return `it belongs to user ${stat.uid}, and this is user ${own}; name a folder of your own`
  if ((stat.mode & 0o077) !== 0)
    return `others may enter it (mode ${(stat.mode & 0o777).toString(8)}); run: chmod 700 ${folder}`
  return undefined
}

/** Whom the system takes a process for. */
export interface ProcessIdentity {
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
export function exposureOfFile(path: string, self = ownIdentity()): Refusal | undefined {
  const found = lookUp(path)
  if (!found?.stat.isFile() || self === undefined) return undefined
  if (dirname(found.realPath) === self.secretsMount) return undefined
  const { uid, gid, mode } = found.stat
  if (uid !== self.uid && uid !== 0) {
    return refusal(
      `${path} belongs to user ${uid}, and this is user ${self.uid}`,
      closing(path, self),
    )
  }
  const isHandedOver = uid === 0 && [0, ...self.gids].includes(gid) && (mode & 0o020) === 0
  const others = verbs(mode)
  const group = isHandedOver ? '' : verbs(mode >> 3)
  if (others === '' && group === '') return undefined
  const who = others === '' ? `group ${gid} may ${group}` : `every user may ${others}`
  const bits = (mode & 0o777).toString(8).padStart(4, '0')
  const remedy = uid === self.uid ? `run: chmod 600 ${path}` : closing(path, self)
  return refusal(`${who} ${path} (mode ${bits})`, mountedRemedy(found.realPath) ?? remedy)
}

/** undefined also where Kubernetes puts another folder in its place between the two looks. */
function lookUp(path: string): { stat: Stats; realPath: string } | undefined {
  try {
    const realPath = realpathSync(path)
    return { stat: statSync(realPath), realPath }
  } catch {
    return undefined // who needs the file says that it cannot be read
  }
}

function verbs(bits: number): string {
  return [...(bits & 4 ? ['read'] : []), ...(bits & 2 ? ['change'] : [])].join(' and ')
}

function closing(path: string, { uid }: ProcessIdentity): string {
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
  const made = `${path}.${randomBytes(8).toString('hex')}`
  const file = openSync(made, 'wx', 0o600)
  try {
    writeFileSync(file, text)
  } finally {
    closeSync(file)
  }
  renameSync(made, path)
}
