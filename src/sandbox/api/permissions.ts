/** What the user of a key may do, and which requests need which permission (facts.md 9). */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { sendError } from '../error-bodies.ts'
import type { Permission } from '../options.ts'
import type { TokenGrant } from './tokens.ts'

export function mayDo(grant: TokenGrant | null, permission: Permission): boolean {
  return grant?.permissions.includes(permission) === true
}

interface Need {
  method?: string
  path: RegExp
  /** Where only one choice of the query needs it. */
  field?: string
  permission: Permission
}

const needs: readonly Need[] = [
  { path: /^\/firework\/v4\/events\/global\/_search$/, permission: 'firework.global_search' },
  { path: /^\/firework\/v4\/credentials\/global\/_search$/, permission: 'firework.global_search' },
  { path: /^\/firework\/v2\/search\/?$/, permission: 'firework.global_search' },
  { path: /^\/astp\/v2\/credentials\/_search$/, permission: 'astp_credentials_access' },
  {
    path: /^\/firework\/v4\/events\/_expand\/?$/,
    field: 'credentials',
    permission: 'astp_credentials_access',
  },
  {
    path: /^\/firework\/v4\/events\/_expand\/?$/,
    field: 'cookies',
    permission: 'astp_cookies_access',
  },
  {
    method: 'POST',
    path: /^\/firework\/v2\/organizations\/[^/]+\/tenants\/?$/,
    permission: 'organization_admin',
  },
]

/** Answers 403 where `grant` lacks what the request needs: `{error}`, or `{message, code}` in v2. */
export async function refuseUnpermitted(
  request: FastifyRequest,
  reply: FastifyReply,
  grant: TokenGrant,
): Promise<void> {
  const path = request.url.split('?')[0] ?? ''
  const { field } = request.query as { field?: unknown }
  const lacking = needs.find(
    (need) =>
      need.path.test(path) &&
      (need.method ?? request.method) === request.method &&
      (need.field ?? field) === field &&
      !mayDo(grant, need.permission),
  )
  if (!lacking) return
  const shape = path.startsWith('/firework/v2/') ? 'message' : 'error'
  await sendError(reply, { status: 403, shape, message: `needs ${lacking.permission}` })
}
