/** Faults on request: which requests are struck, how often, and what then happens to them. */
import { z } from 'zod'
import type { Random } from './random.ts'

const faultSchema = z.strictObject({
  /**
   * A path with `*` for anything (`/firework/*`, `/slack/*`), or a step of SMTP: `smtp:connect`,
   * `smtp:auth`, `smtp:mail`, `smtp:rcpt`, `smtp:data`.
   */
  on: z.string().min(1),
  /**
   * `status`: answers with `status`, nothing is taken. `hang`: never answers. `refuse`: cut before
   * anything is taken. `lose-answer`: taken, then cut without an answer. `cut`: taken, and cut in the
   * middle of the answer. `delay`: goes on after `ms`. `drip`: an answer that comes a byte in `ms` and
   * never ends, nothing is taken. `invalid-json`, `wrong-shape`: a 200 that lies. SMTP knows the first
   * six.
   */
  effect: z.enum([
    'status',
    'hang',
    'refuse',
    'lose-answer',
    'cut',
    'delay',
    'drip',
    'invalid-json',
    'wrong-shape',
  ]),
  /** HTTP status or SMTP reply code of `status`. */
  status: z.int().min(200).max(599).default(500),
  /** Shape of its body; by default the one the service uses for that status. */
  body: z.enum(['error', 'detail', 'message', 'text']).optional(),
  code: z.string().optional(),
  message: z.string().optional(),
  /** Further headers, e.g. `retry-after` or `location`. */
  headers: z.record(z.string(), z.string()).default({}),
  ms: z.number().min(0).default(0),
  method: z.string().optional(),
  /** Only mail to this address. */
  recipient: z.string().optional(),
  /** Only requests of these organizations. */
  organizations: z.array(z.int()).optional(),
  /** true: only requests whose body or query has a cursor; false: only those without. */
  withCursor: z.boolean().optional(),
  /** The next so many; for ever unless given. */
  times: z.int().min(1).optional(),
  probability: z.number().min(0).max(1).default(1),
})

export type Fault = z.infer<typeof faultSchema>
export type FaultInput = z.input<typeof faultSchema>

/** What happens, as seen by a fault. */
export interface Occasion {
  on: string
  method?: string
  recipient?: string
  withCursor?: boolean
  organization?: number | null
}

export interface FaultControl {
  /** Adds one; returns what takes it away again. Throws ZodError on a fault that makes no sense. */
  add(fault: FaultInput): () => void
  clear(): void
  /** Those still in force; `hits`: how often each struck. */
  list(): (Fault & { hits: number })[]
}

export interface Faults extends FaultControl {
  /** The fault that strikes now, the oldest first; its count goes down. */
  strike(occasion: Occasion): Fault | null
}

export function createFaults(random: Random): Faults {
  let active: { fault: Fault; pattern: RegExp; hits: number }[] = []

  function strike(occasion: Occasion): Fault | null {
    const struck = active.find(
      ({ fault, pattern }) =>
        pattern.test(occasion.on) && fits(fault, occasion) && random.chance(fault.probability),
    )
    if (!struck) return null
    struck.hits++
    if (struck.hits === struck.fault.times) active = active.filter((entry) => entry !== struck)
    return struck.fault
  }

  return {
    strike,
    add(input) {
      const fault = faultSchema.parse(input)
      const entry = { fault, pattern: globPattern(fault.on), hits: 0 }
      active.push(entry)
      return () => {
        active = active.filter((other) => other !== entry)
      }
    },
    clear() {
      active = []
    },
    list: () => active.map(({ fault, hits }) => ({ ...fault, hits })),
  }
}

function fits(fault: Fault, occasion: Occasion): boolean {
  if (fault.method !== undefined && fault.method !== occasion.method) return false
  if (fault.recipient !== undefined && fault.recipient !== occasion.recipient) return false
  if (fault.organizations && !fault.organizations.includes(occasion.organization ?? -1))
    return false
  return fault.withCursor === undefined || fault.withCursor === occasion.withCursor
}

function globPattern(pattern: string): RegExp {
  const parts = pattern.split('*').map((part) => part.replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${parts.join('.*')}$`, 's')
}
