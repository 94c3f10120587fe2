/** The folder that a demo keeps between runs: made by it alone, used by one run at a time. */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { z } from 'zod'
import { messageOf } from '../../runtime/errors.ts'
import { dropLockFile, lockFileOf, takeLockFile } from '../../runtime/lock-file.ts'
import { replacePrivateFile, troubleOfPrivateFolder } from '../../runtime/private-folder.ts'
import { CommandError } from '../command-error.ts'

const state = z.object({
  seed: z.int(),
  apiKey: z.string(),
  webhookSecret: z.string(),
  redisPassword: z.string(),
  ports: z.object({ redis: z.int(), sandbox: z.int(), smtp: z.int(), http: z.int() }),
})

/** What the next run needs so that cursors, tokens and addresses keep their meaning. */
export type DemoState = z.infer<typeof state>

export interface DemoFolder {
  readonly path: string
  readonly state: DemoState
  /** The path of a file or folder in it. */
  at(name: string): string
  /** Moves the ports that another program has taken to free ones, and writes the state. */
  settlePorts(): Promise<void>
  /** Lets the next run in. */
  close(): void
}

export interface DemoFolderOptions {
  path: string
  /** Everything of earlier runs goes first. */
  isFresh: boolean
  /** undefined: that of the runs before, or 1. */
  seed: number | undefined
}

const marker = 'made-by-tocsin-demo'
const lock = 'lock'

/** Throws CommandError for a folder that is not a demo's, is in use, or tells of another seed. */
export function openDemoFolder({ path, isFresh, seed }: DemoFolderOptions): DemoFolder {
  const at = (name: string): string => join(path, name)
  make(path)
  refuseForeign(path)
  writeFileSync(at(marker), 'npm run demo keeps its state here; --fresh deletes all of it\n')
  takeLock(path)
  try {
    if (isFresh) empty(path)
    const held = existsSync(at('state.json')) ? readState(path) : newState(seed ?? 1)
    if (seed !== undefined && seed !== held.seed) {
      throw new CommandError(
        'mistake',
        `--seed ${seed}: ${path} goes on with seed ${held.seed}; leave --seed out, or add --fresh`,
      )
    }
    const save = (): void => {
      replacePrivateFile(at('state.json'), JSON.stringify(held, null, 2))
    }
    return {
      path,
      state: held,
      at,
      async settlePorts() {
        const { ports } = held
        for (const use of ['redis', 'sandbox', 'smtp', 'http'] as const) {
          ports[use] = (await listenOnce(ports[use])) ?? (await listenOnce(0)) ?? 0
        }
        save()
      },
      close: () => dropLockFile(at(lock)),
    }
  } catch (error) {
    dropLockFile(at(lock))
    throw error
  }
}

function make(path: string): void {
  let trouble: string | undefined
  try {
    trouble = troubleOfPrivateFolder(path)
  } catch (error) {
    throw new CommandError(
      'mistake',
      `${path} cannot be made (${messageOf(error)}); name another folder with --folder`,
      { cause: error },
    )
  }
  if (trouble !== undefined) throw new CommandError('mistake', `--folder ${path}: ${trouble}`)
}

function newState(seed: number): DemoState {
  return {
    seed,
    apiKey: `fw_sandbox_${randomBytes(8).toString('hex')}`,
    webhookSecret: `whsec_${randomBytes(32).toString('base64')}`,
    redisPassword: randomBytes(24).toString('hex'),
    ports: { redis: 0, sandbox: 0, smtp: 0, http: 0 },
  }
}

function readState(path: string): DemoState {
  try {
    return state.parse(JSON.parse(readFileSync(join(path, 'state.json'), 'utf8')))
  } catch (cause) {
    const problem = `${path} does not hold what this version of the demo wrote`
    throw new CommandError('mistake', `${problem}; begin anew with --fresh`, { cause })
  }
}

function refuseForeign(path: string): void {
  const names = readdirSync(path)
  if (names.length === 0 || names.includes(marker)) return
  throw new CommandError(
    'mistake',
    `${path} holds files that no demo made; name another folder with --folder`,
  )
}

function empty(path: string): void {
  const names = readdirSync(path).filter((name) => name !== marker && !name.startsWith(lock))
  for (const name of names) rmSync(join(path, name), { recursive: true, force: true })
}

function takeLock(path: string): void {
  if (takeLockFile(join(path, lock))) return
  const remedy = `end it, or name another folder with --folder (no demo runs? delete ${lockFileOf(join(path, lock))})`
  throw new CommandError('mistake', `another demo runs in ${path}; ${remedy}`)
}

/** The port that could be had, 0 asking for any; undefined where another program has it. */
async function listenOnce(port: number): Promise<number | undefined> {
  const server = createServer()
  server.listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch {
    return undefined
  }
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' ? address?.port : undefined
}
