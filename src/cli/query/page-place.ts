/**
 * What `--from` takes: a page of the service by its cursor, how many of its rows were shown already, and
 * the mark of the walk that it belongs to.
 */
import { createSecretBox } from '../../runtime/sealed-secret.ts'
import { CommandError } from '../command-error.ts'
import type { OpenService } from './service-command.ts'

export interface PagePlace {
  cursor: string | null
  skip: number
}

/**
 * Stands for what is walked through: the same for the same command, account and request. Whoever has it
 * cannot test a guess at a secret in the request: that takes the account's key.
 */
export function walkMark({ client }: OpenService, command: string, request: unknown): string {
  const { name, apiKey } = client.account
  const box = createSecretBox(() => apiKey.reveal())
  return box.digest([command, name, JSON.stringify(request)]).slice(0, markLength)
}

const markLength = 10

/** `<mark>.<skip>.<cursor>`. */
export function wordOf({ cursor, skip }: PagePlace, mark: string): string {
  return `${mark}.${skip}.${cursor ?? ''}`
}

/** A cursor of the service by itself is a place too. Throws CommandError for one of another walk. */
export function placeIn(word: string | undefined, mark: string): PagePlace {
  if (word === undefined) return { cursor: null, skip: 0 }
  const [, of, skip, cursor = ''] = /^([0-9a-f]{10})\.(\d{1,6})\.(.*)$/s.exec(word) ?? []
  if (of === undefined) return { cursor: word, skip: 0 }
  if (of !== mark) throw new CommandError('mistake', ofAnother)
  return { cursor: cursor === '' ? null : cursor, skip: Number(skip) }
}

const ofAnother =
  '--from belongs to another request; repeat the one that gave it, with the same account, filters and order'
