/**
 * What each view shows: the answer of the API of the same name, with its forms, and `page`. Times are ISO
 * 8601 in UTC, null is unknown, and every text may be hostile. A `url` or `*_url` is a path of this page.
 */
import type { AnswerOf } from '../question.ts'
import type { searchQuestion } from '../questions/search.ts'
import type { tenantsQuestion } from '../questions/tenants.ts'
import type { messagesQuestion } from '../questions/told.ts'
import type {
  furnishEvent,
  furnishMessage,
  furnishNotTold,
  furnishNow,
  furnishRules,
} from './furnish.ts'

/** What every view gets beside its answer. */
export interface PageContext {
  title: string
  view: View
  /** The path of this address, without its query. */
  path: string
  user: { name: string; role: 'read' | 'act' } | null
  /** Whether there is a session to end: a visitor on loopback has none, nor has whom a proxy names. */
  signed_in: boolean
  /** The account that every view is narrowed to. */
  account: string | null
  accounts: string[]
  version: string
  as_of: string
  /** Form tokens by the path of the act; `/sign-out` among them for whoever is signed in. */
  tokens: Record<string, string>
}

export interface ErrorData {
  status: number
  title: string
  detail: string
  remedy: string | null
  back: string
}

export interface ViewData {
  now: ReturnType<typeof furnishNow>
  told: AnswerOf<typeof messagesQuestion>
  message: ReturnType<typeof furnishMessage>
  event: ReturnType<typeof furnishEvent>
  'not-told': ReturnType<typeof furnishNotTold>
  rules: Awaited<ReturnType<typeof furnishRules>>
  tenants: AnswerOf<typeof tenantsQuestion>
  search: AnswerOf<typeof searchQuestion>
  error: ErrorData
  'sign-in': {
    /** Where to go then. */
    next: string
    problem: string | null
    /** An address may fill it in, and is sent at once. */
    demo: boolean
  }
  /** What an act came to. */
  done: { title: string; said: string[]; touched: string | null; back: string }
}

export type View = keyof ViewData
