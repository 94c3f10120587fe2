/**
 * Signed webhooks for machines (Standard Webhooks 1.0.0). A send is one POST with one id; only a
 * 2xx that names no error is success.
 */
import type { LookupFunction } from 'node:net'
import type { Clock } from '../../lib/clock.ts'
import { errorMessage } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import type { Secret } from '../../lib/secret.ts'
import { describeSink } from '../destinations.ts'
import { createHttpTransport, errorFromAnswer, findDenial, isSuccess, readTarget } from '../http.ts'
import {
  type Delivery,
  type Preview,
  type Receipt,
  revealSecret,
  type SendOptions,
  type Sink,
  SinkError,
  type SinkReason,
} from '../sink.ts'
import { createBodyRenderer, type OwnBody, type TemplateParts } from '../templates.ts'
import { measureMember, renderBody, replaceUnstorable } from './body.ts'
import { headerValueProblem, type WebhookConfig } from './config.ts'
import { sign } from './signature.ts'

const sendTimeoutMs = 15_000
const concurrency = 8

export interface WebhookSinkOptions extends TemplateParts {
  logger: Logger
  clock: Clock
  /** Finds the addresses of a host. Default: the system's resolver. */
  resolve?: LookupFunction
}

/** Reads the URL and the signing secrets at each send, so that they rotate without a restart. */
export function createWebhookSink(config: WebhookConfig, options: WebhookSinkOptions): Sink {
  const { logger, clock, resolve } = options
  const renderOwnBody = createBodyRenderer(config, options)
  const transport = createHttpTransport({
    allowPrivate: config.allowPrivate,
    outbound: config,
    resolve,
    maxConnections: concurrency,
  })

  async function send(delivery: Delivery, sendOptions: SendOptions): Promise<Receipt> {
    const { body, problem } = renderEvents(delivery)
    const proof = { ...signatureHeaders(delivery, body), ...configuredHeaders(config) }
    const headers = buildHeaders(delivery, proof)
    const answer = await transport.post(readTarget(config), { headers, body }, sendOptions)
    const { status } = answer
    logger.debug({ sink: config.name, delivery: delivery.id, status }, 'webhook answered')
    const denial = isSuccess(status) ? findDenial(answer.body) : {}
    if (!denial) return { answer: `HTTP ${status}` }
    throw errorFromAnswer(answer, { nowMs: clock.now(), ...denial, advice: adviceFor(problem) })
  }

  function signatureHeaders({ id }: Delivery, body: string): Record<string, string> {
    const timestamp = Math.floor(clock.now() / 1000)
    const stamp = { 'webhook-timestamp': String(timestamp) }
    if (config.secrets.length === 0) return stamp
    try {
      const secrets = config.secrets.map((secret) => secret.reveal())
      return { ...stamp, 'webhook-signature': sign({ id, timestamp, body }, secrets) }
    } catch (error) {
      throw new SinkError('misconfigured', `cannot sign: ${errorMessage(error)}`)
    }
  }

  function renderEvents(delivery: Delivery): OwnBody & { body: string } {
    if (delivery.summary === undefined) {
      const { body = renderBody(delivery), problem } = renderOwnBody(delivery)
      return { body: replaceUnstorable(body), problem }
    }
    throw new SinkError('invalid', 'a summary is for people; a webhook takes events one by one')
  }

  return {
    ...describeSink(config, 'machines'),
    batch: config.batch,
    concurrency,
    sendTimeoutMs,
    send,
    reach: async (signal) => transport.reach(readTarget(config), signal),
    measure: measureMember,
    preview: (delivery) => previewRequest(config, delivery, renderEvents(delivery).body),
    close: () => transport.close(),
  }
}

function previewRequest(config: WebhookConfig, delivery: Delivery, rendered: string): Preview {
  const body: unknown = JSON.parse(rendered)
  return {
    text: JSON.stringify(body, null, 2),
    body,
    headers: buildHeaders(delivery, {}),
    added: listAdded(config),
  }
}

/** The headers that a preview leaves out. */
function listAdded({ secrets, authorization, password, headers = [] }: WebhookConfig): string {
  const names = [
    'webhook-timestamp',
    ...(secrets.length > 0 ? ['webhook-signature'] : []),
    ...(authorization || password ? ['authorization'] : []),
    ...headers.map(({ name }) => name),
  ]
  return names.join(' and ')
}

/** Reads them at each send, so that they can change without a restart. */
function configuredHeaders(config: WebhookConfig): Record<string, string> {
  const { authorization, username, password, headers = [] } = config
  const given = headers.map(({ name, value }) => [name, readHeader('headers', value)])
  const own: Record<string, string> = Object.fromEntries(given)
  if (authorization) own['authorization'] = readHeader('authorization', authorization)
  if (username !== undefined && password) {
    const login = `${username}:${revealSecret(password, 'password')}`
    own['authorization'] = `Basic ${Buffer.from(login).toString('base64')}`
  }
  return own
}

function readHeader(key: string, secret: Secret): string {
  const value = revealSecret(secret, key)
  const problem = headerValueProblem(value)
  if (problem === undefined) return value
  throw new SinkError('misconfigured', `${key}: ${problem.problem}; ${problem.remedy}`)
}

function buildHeaders(
  delivery: Delivery,
  signature: Record<string, string>,
): Record<string, string> {
  return {
    'content-type': 'application/json',
    'user-agent': 'tocsin',
    'webhook-id': delivery.id,
    'idempotency-key': delivery.id,
    'tocsin-attempt': String(delivery.attempt),
    ...(delivery.mayBeRepeat && { 'tocsin-possible-repeat': 'true' }),
    ...(delivery.isTest && { 'tocsin-test': 'true' }),
    ...signature,
  }
}

const advice: Partial<Record<SinkReason, string>> = {
  redirected: ', a redirect, and webhooks follow none: set url to the address it leads to',
  unauthorized: ': check the signing secret and any token in url',
  gone: ': the endpoint is no more; set a new url or remove the sink',
  rejected: ': check that url names the endpoint',
}

/**
 * A receiver that takes nothing but its own form refuses the built-in body. A dead letter keeps 200
 * characters of this.
 */
function adviceFor(problem: string | undefined): typeof advice {
  if (problem === undefined) return advice
  const failed = ` to the built-in body, since the template webhook_body failed: ${problem}; mend it and replay`
  return { ...advice, invalid: failed, rejected: failed }
}
