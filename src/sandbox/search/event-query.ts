/** What the thirteen kinds of event queries find (facts.md 3.2); terms as those of assets. */
import type { z } from 'zod'
import type { eventQuery } from '../../service/wire/events.ts'
import type { SandboxEvent } from '../history/sandbox-event.ts'
import { hasQueried, hasWords, mentionOf } from '../matching/mention.ts'
import { sightingOf, type Sighting } from '../matching/sighting.ts'

type Query = z.output<typeof eventQuery>
type Finder = (sighting: Sighting) => boolean

/** Throws LuceneError where a `query_string` is none. */
export function eventMatcher(query: Query): (event: SandboxEvent) => boolean {
  const finds = finderOf(query)
  return (event) => finds(sightingOf(event))
}

function finderOf(query: Query): Finder {
  switch (query.type) {
    case 'query_string':
      return hasQueried(query.query_string)
    case 'brand':
      return hasWords(query.name)
    case 'credentials':
      return hasPair(query.username, query.password)
    case 'domain':
    case 'email':
    case 'keyword':
    case 'username':
    case 'github_repository':
    case 'name':
    case 'bin':
    case 'ip':
    case 'secret':
    case 'azure_tenant':
      return mentionOf({ type: query.type, data: query, attributes: [] })
  }
}

/** Both in one stolen or leaked credential. */
function hasPair(username: string, password: string): Finder {
  const pairs = [
    ['credentials.username', 'credentials.password'],
    ['identity_name', 'password'],
  ] as const
  return ({ document: { fields } }) =>
    pairs.some(([user, secret]) =>
      fields[user]?.some(
        (name, index) =>
          name.toLowerCase() === username.toLowerCase() && fields[secret]?.[index] === password,
      ),
    )
}
