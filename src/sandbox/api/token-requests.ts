/** The requests about tokens over HTTP: a key for a token, and whose a token is. */
import type { FastifyInstance, FastifyReply } from 'fastify'
import type { WireTokenGrant, WireTokenTest } from '../../service/wire/tokens.ts'
import { sendError } from '../error-bodies.ts'
import type { RequestLog } from '../request-log.ts'
import { grantOf } from './gate.ts'
import { keyIn, type TokenGrant, type Tokens } from './tokens.ts'

export function addTokenRequests(
  app: FastifyInstance,
  { tokens, log }: { tokens: Tokens; log: RequestLog },
): void {
  app.post('/tokens/generate', (request, reply) => {
    const body = log.entryOf(request).body as { tenant_id?: number } | undefined
    return answerGrant(
      reply,
      tokens.issue(keyIn(request.headers.authorization ?? ''), body?.tenant_id),
    )
  })
  app.get('/tokens/test', (request) => identityOf(grantOf(request, tokens)))
}

function answerGrant(
  reply: FastifyReply,
  grant: TokenGrant | 'forbidden' | 'unknown',
): FastifyReply {
  if (grant === 'unknown') return sendError(reply, { status: 401, message: 'bad API key' })
  if (grant === 'forbidden') return sendError(reply, { status: 403, message: 'not your tenant' })
  // About a refresh cookie, not about the token, as in the real answer: a trap for clients.
  const refreshTokenExp = Math.floor(grant.expiresAtMs / 1000) + 2_592_000
  const body: WireTokenGrant = { token: grant.token, refresh_token_exp: refreshTokenExp }
  return reply.send(body)
}

function identityOf(grant: TokenGrant | null): WireTokenTest {
  return {
    tenant_id: grant?.tenantId ?? null,
    api_key_id: grant?.apiKeyId ?? null,
    organization_id: grant?.organizationId ?? null,
    user_id: grant?.userId ?? null,
    user_email: grant?.userEmail ?? null,
    scopes: ['authenticated', 'apikey', 'firework', ...(grant?.permissions ?? [])],
  }
}
