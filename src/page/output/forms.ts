/** The forms that a view shows to whoever may act. */
import type { FastifyRequest } from 'fastify'
import { localPath } from '../access/sign-in.ts'
import { mayAct } from '../access/user.ts'
import { addressOf } from './urls.ts'

/** A form that changes something. Its fields are hidden, or asked for. */
export interface Act {
  path: string
  label: string
  /** What is asked before it is done. */
  confirm: string | null
  fields: Field[]
}

export interface Field {
  name: string
  label: string
  value: string
  kind: 'text' | 'needed' | 'hidden'
}

export interface Forms {
  /** Whoever may only read is shown none. */
  mayAct: boolean
  act(path: string, label: string, more?: { confirm?: string; fields?: Field[] }): Act
  /** The paths of all that were made. */
  paths: ReadonlySet<string>
}

/** `back`: the address to which an act leads back. */
export function createForms(
  { user, session }: Pick<FastifyRequest, 'user' | 'session'>,
  back: string,
): Forms {
  const paths = new Set<string>()
  return {
    mayAct: mayAct(user) && session !== undefined,
    paths,
    act(path, label, { confirm, fields = [] } = {}) {
      paths.add(path)
      return { path, label, confirm: confirm ?? null, fields: [hidden('back', back), ...fields] }
    },
  }
}

export function hidden(name: string, value: string): Field {
  return { name, label: name, value, kind: 'hidden' }
}

const labels: Record<string, string> = { reason: 'Why', for: 'For how long', item: 'Events' }

/** Names fields as forms do: `matchers.0: …` is `Matcher 1: …`. */
export function inLabels(text: string): string {
  return text.replaceAll(/(?:^|(?<=\. ))(\w)(\w*)(?:\.(\d+))?(?=: )/g, (...found: string[]) => {
    const [, first = '', rest = '', at] = found
    const label = labels[first + rest] ?? first.toUpperCase() + rest
    return at === undefined ? label : `${label.replace(/s$/, '')} ${Number(at) + 1}`
  })
}

type Asked = Pick<FastifyRequest, 'method' | 'url' | 'query' | 'body'>

/** Where an answer leads back to: as the form's field `back` or the address of a filled form says. */
export function readBack({ body, query }: Pick<Asked, 'body' | 'query'>): string {
  const { back } = { ...(query as object), ...(body as object) } as { back?: unknown }
  const [first] = [back].flat() // a form with two acts has one for each
  return localPath(typeof first === 'string' ? first : '/')
}

/** The form that was refused, with what its address can hold of what was typed, but for what is wrong. */
export function refusedForm(request: Asked, message = ''): string {
  const path = request.url.split('?', 1)[0] ?? '/'
  const { form_token: _used, ...typed } = (request.body ?? {}) as Record<string, string>
  if (path === '/silences') return `${addressOf('/rules', typed)}#silence`
  const { cursor: _place, ...query } = request.query as Record<string, string>
  const [field = ''] = /^\w+(?=: )/.exec(message) ?? []
  if (request.method === 'POST' || !Object.hasOwn(query, field)) return readBack(request)
  return addressOf(path.replace(/\.csv$/, ''), { ...query, [field]: null })
}
