/** A client over HTTP on a server that does as a test says; gone after the test. */
import { inspect } from 'node:util'
import { onTestFinished } from 'vitest'
import type { UpstreamClient } from '../../../../src/upstream/client.ts'
import type { AccountConfig } from '../../../../src/upstream/config.ts'
import type { CallOptions } from '../../../../src/upstream/call.ts'
import { UpstreamError } from '../../../../src/upstream/error.ts'
import { startHttpServer, type HttpServer } from '../../../support/http-server.ts'
import type { RedisForTests } from '../../../support/ledger.ts'
import {
  anAccount,
  pretendService,
  startReplica,
  type PretendService,
  type Replica,
  type ReplicaOptions,
} from '../../../support/replica.ts'

let prefixes = 0

/** The client of one more process; it shares nothing, unless `more` has another's prefix. */
export function aReplica(
  tests: RedisForTests,
  account: Partial<AccountConfig>,
  more: Partial<ReplicaOptions> = {},
): Replica {
  const prefix = `operations-${(prefixes += 1)}`
  const options = { redisUrl: tests.server.url, prefix, account: anAccount(account), ...more }
  const replica = startReplica(options)
  onTestFinished(() => replica.stop())
  return replica
}

export interface ScriptedScene {
  server: HttpServer
  service: PretendService
  client: UpstreamClient
  /** Method, path and query of the requests below a path. */
  sent: (below?: string) => string[]
}

export async function aScriptedScene(tests: RedisForTests): Promise<ScriptedScene> {
  const server = await startHttpServer()
  onTestFinished(() => server.stop())
  const service = pretendService(server)
  const { client } = aReplica(tests, { baseUrl: server.url })
  return {
    server,
    service,
    client,
    sent: (below = '/firework') =>
      server.requests
        .filter(({ path }) => path.startsWith(below))
        .map(({ method, path }) => `${method} ${path}`),
  }
}

export function asked(): CallOptions {
  return {
    slot: { kind: 'command', name: 'test', dueSinceMs: Date.now() },
    signal: AbortSignal.timeout(20_000),
  }
}

/** What an operation fails with; it must be what the client promises to fail with. */
export async function failureOf(work: Promise<unknown>): Promise<UpstreamError> {
  const error = await work.then(
    (value) => value,
    (thrown: unknown) => thrown,
  )
  if (error instanceof UpstreamError) return error
  throw new Error(`no UpstreamError: ${inspect(error)}`)
}
