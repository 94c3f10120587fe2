/** The forms that a view shows to whoever may act. */
import type { FastifyRequest } from 'fastify'
import { mayAct } from './access/user.ts'
import type { Act, Field } from './view-data.ts'

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

export function asked(name: string, label: string, value = ''): Field {
  return { name, label, value, kind: 'text' }
}
