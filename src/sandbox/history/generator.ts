/** Makes events up: many types, many languages, a few that nobody has seen before. */
import type { SandboxGroup } from '../options.ts'
import { createRandom } from '../random.ts'
import type { Family } from './draft.ts'
import {
  bucket,
  bucketObject,
  dockerRepository,
  lookalike,
  service,
  socialMediaAccount,
  unheardOf,
} from './exposure.ts'
import { bot, stealerLog } from './infections.ts'
import { creditCard, leak, leakedCredential, paste } from './leaks.ts'
import type { SandboxEvent } from './sandbox-event.ts'
import { blogPost, chatMessage, forumPost, listing, ransomLeak } from './underground.ts'

/** Families by type, with how often they come per hundred events. */
const families: Record<string, { weight: number; family: Family }> = {
  stealer_log: { weight: 14, family: stealerLog },
  leaked_credential: { weight: 16, family: leakedCredential },
  chat_message: { weight: 14, family: chatMessage },
  forum_post: { weight: 10, family: forumPost },
  listing: { weight: 7, family: listing },
  ransomleak: { weight: 3, family: ransomLeak },
  lookalike: { weight: 7, family: lookalike },
  service: { weight: 6, family: service },
  paste: { weight: 6, family: paste },
  blog_post: { weight: 3, family: blogPost },
  bucket: { weight: 2, family: bucket },
  bucket_object: { weight: 3, family: bucketObject },
  leak: { weight: 2, family: leak },
  cc: { weight: 2, family: creditCard },
  bot: { weight: 2, family: bot },
  docker_repository: { weight: 1, family: dockerRepository },
  social_media_account: { weight: 1, family: socialMediaAccount },
  unheard_of: { weight: 1, family: unheardOf },
}

const lot = Object.values(families).flatMap(({ weight, family }) =>
  Array.from({ length: weight }, () => family),
)

const rareSeverities = ['urgent', 'none']
const tags = ['triage', 'vip', 'к проверке', 'false positive?']

export interface Generator {
  /** An event of `group`; what `given` says holds, the rest is made up to fit its type. */
  make(group: SandboxGroup, nowMs: number, given?: Partial<SandboxEvent>): SandboxEvent
  /** A whole number of milliseconds up to `max`, and a group, by the same chance as the events. */
  ageUpTo(max: number): number
  groupOf(groups: readonly SandboxGroup[]): SandboxGroup
  place: () => GeneratorPlace
}

/** How far a generator is: one that goes on from there makes what this one would. */
export interface GeneratorPlace {
  number: number
  seed: number
}

export function createGenerator(seed: number, from?: GeneratorPlace): Generator {
  const random = createRandom(from?.seed ?? seed)
  let number = from?.number ?? 0

  function make(
    group: SandboxGroup,
    nowMs: number,
    given: Partial<SandboxEvent> = {},
  ): SandboxEvent {
    number++
    const identifier = random.pick(group.identifiers)
    const createdAtMs = given.createdAtMs ?? nowMs
    const arrivedAtMs = given.arrivedAtMs ?? nowMs
    const family = families[given.type ?? '']?.family ?? random.pick(lot)
    const draft = family({
      random,
      number,
      subject: identifier.term ?? identifier.name,
      createdAtMs,
    })
    const isGivenType = given.type === undefined || given.type === draft.type
    const severity = random.chance(0.005) ? random.pick(rareSeverities) : undefined
    const override = random.chance(0.03) ? random.pick(['info', 'critical']) : null
    return {
      uid: draft.uid,
      type: draft.type,
      severity: severity ?? random.pick(draft.severities),
      override: given.severity === undefined ? override : null,
      createdAtMs,
      arrivedAtMs,
      matchedAtMs: random.chance(0.1) ? null : arrivedAtMs,
      groupIds: [group.id],
      identifiers: [{ id: identifier.id, name: identifier.name }],
      tags: random.chance(0.1) ? [random.pick(tags)] : [],
      notes: null,
      ignoredAtMs: null,
      remediatedAtMs: null,
      highlights: draft.highlights,
      data: isGivenType ? draft.data : null,
      ...given,
    }
  }

  return {
    make,
    ageUpTo: (max) => random.int(0, max),
    groupOf: (groups) => random.pick(groups),
    place: () => ({ number, seed: random.seed() }),
  }
}
