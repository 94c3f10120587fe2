/**
 * A service whose every feed gets one bad answer first, and sinks that answer nothing but nonsense; one
 * feed and one sink do well, so that it shows whether the others harm them.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import {
  answerOf,
  badBodies,
  badGrants,
  badHeads,
  badItems,
  oddItems,
  type BadInput,
} from './inputs.ts'

/** Groups from here on are those of bad answers. */
export const firstBadGroup = 100
export const goodGroup = 1
export const itemsGroup = 2
const itemsPerPage = 5

export interface Pretenders {
  url: string
  /** What each bad feed gets first. */
  answers: BadInput<Buffer>[]
  /** What each bad Slack sink and each bad webhook gets, always. */
  slack: BadInput<Buffer>[]
  hook: BadInput<Buffer>[]
  grants: BadInput<Buffer>[]
  items: BadInput<unknown>[]
  /** The good feed shows it from now on. */
  show(uid: string, type: string): void
  /** Bodies that the good sink has got. */
  received: string[]
  /** Names of what was handed out so far. */
  handedOut: Set<string>
  stop(): Promise<void>
}

export async function startPretenders(): Promise<Pretenders> {
  const [slack, hook, grants] = [badBodies, badHeads, badGrants]
  const answers = [...slack, ...hook]
  const items = [...badItems, ...oddItems]
  const shown: unknown[] = []
  const received: string[] = []
  const handedOut = new Set<string>()

  function bad({ name, content }: BadInput<Buffer>, where: string): Buffer {
    handedOut.add(`${where}: ${name}`)
    return content
  }

  function grantFor(key: string): Buffer {
    const grant = grants[Number(/^bad-(\d+)$/.exec(key)?.[1] ?? -1)]
    return grant ? bad(grant, 'token') : answerOf(JSON.stringify({ token: `token-of-${key}` }))
  }

  function pageFor(group: number, from: number): Buffer {
    if (group === goodGroup) return page(shown.slice(from), shown.length)
    if (group === itemsGroup) return itemsFrom(from)
    const answer = answers[group - firstBadGroup]
    const isFirst = answer && !handedOut.has(`feed: ${answer.name}`)
    return isFirst ? bad(answer, 'feed') : page([], null)
  }

  function itemsFrom(from: number): Buffer {
    const some = items.slice(from, from + itemsPerPage)
    for (const { name } of some) handedOut.add(name)
    const next = from + some.length
    return page(
      some.map(({ content }) => content),
      next < items.length ? next : null,
    )
  }

  async function answer(incoming: IncomingMessage): Promise<Buffer> {
    const body = await text(incoming)
    const path = incoming.url ?? ''
    if (path === '/tokens/generate') return grantFor(incoming.headers.authorization ?? '')
    if (path === '/tokens/test') return answerOf('{"organization_id":1,"tenant_id":1}')
    const group = /identifier_groups\/(\d+)\//.exec(path)?.[1]
    if (group !== undefined) {
      const { from } = JSON.parse(body) as { from?: string | null }
      return pageFor(Number(group), Number(from ?? 0))
    }
    const [, sink, index] = /^\/(hook|slack)\/(\d+)$/.exec(path) ?? []
    const nonsense = (sink === 'hook' ? hook : slack)[Number(index)]
    if (sink !== undefined && nonsense) return bad(nonsense, sink)
    received.push(body)
    return answerOf('ok')
  }

  const server = createServer((incoming) => {
    const { socket } = incoming
    socket.on('error', () => undefined) // who gets nonsense may hang up
    answer(incoming).then(
      (bytes) => socket.end(bytes),
      () => socket.destroy(),
    )
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    answers,
    slack,
    hook,
    grants,
    items,
    show: (uid, type) => void shown.push(eventOf(uid, type)),
    received,
    handedOut,
    async stop() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

function page(items: unknown[], next: number | null): Buffer {
  return answerOf(JSON.stringify({ items, next: next === null ? null : String(next) }))
}

function eventOf(uid: string, type: string): unknown {
  const estimated_created_at = new Date().toISOString()
  return { metadata: { uid, type, severity: 'high', estimated_created_at } }
}
