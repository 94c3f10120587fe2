/**
 * Signed webhooks for machines (Standard Webhooks 1.0.0). A send is one POST with one id; only a
 * 2xx that names no error is success.
 */
import type { LookupFunction } from 'node:net'
import type { Clock } from '../../lib/clock.ts'
import { errorMessage } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import type { Secret } from '../../lib/config/secret.ts'
import { readTarget } from '../http.ts'
import { createHttpSink } from '../http-sink.ts'
import {
  type Delivery,
  type Preview,
  revealSecret,
  type Sink,
  SinkError,
  type SinkReason,
} from '../sink.ts'
import type { TemplateParts } from '../templates/template-config.ts'
import { createBodyRenderer } from '../templates/templates.ts'
import { measureMember, renderBody, replaceUnstorable } from './body.ts'
import { headerValueProblem, type WebhookConfig } from './config.ts'
import { sign } from './signature.ts'

export interface WebhookSinkOptions extends TemplateParts {
  logger: Logger
  clock: Clock
  /** Finds the addresses of a host. Default: the system's resolver. */
  resolve?: LookupFunction
}

/** Reads the URL and the secrets at each send, so that they rotate without a restart. */
export function createWebhookSink(config: WebhookConfig, options: WebhookSinkOptions): Sink {
  const renderOwnBody = createBodyRenderer(config, options)
  const { post, ...sink } = createHttpSink(
    config,
    {
      audience: 'machines',
      concurrency: 8,
      readsAnswer: false,
      readUrl: () => readTarget(config),
      describeAcceptance: ({ status }) => `HTTP ${status}`,
      advice,
    },
    options,
  )

  function renderEvents(delivery: Delivery): string {
    if (delivery.summary === undefined)
      return replaceUnstorable(renderOwnBody(delivery) ?? renderBody(delivery))
    throw new SinkError('invalid', 'a summary is for people; a webhook takes events one by one')
  }

  function signatureHeaders({ id }: Delivery, body: string): Record<string, string> {
    const timestamp = Math.floor(options.clock.now() / 1000)
    const stamp = { 'webhook-timestamp': String(timestamp) }
    if (config.secret === undefined) return stamp
    try {
      const signature = sign({ id, timestamp, body }, config.secret.reveal())
      return { ...stamp, 'webhook-signature': signature }
    } catch (error) {
      throw new SinkError('misconfigured', `cannot sign: ${errorMessage(error)}`)
    }
  }

  return {
    ...sink,
    batch: config.batch,
    async send(delivery, sendOptions) {
      const body = renderEvents(delivery)
      const proof = { ...signatureHeaders(delivery, body), ...configuredHeaders(config) }
      return post({ headers: buildHeaders(delivery, proof), body }, sendOptions)
    },
    measure: measureMember,
    preview: (delivery) => previewRequest(config, delivery, renderEvents(delivery)),
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
function listAdded({ secret, headers = [] }: WebhookConfig): string {
  const names = [
    'webhook-timestamp',
    ...(secret === undefined ? [] : ['webhook-signature']),
    ...headers.map(({ name }) => name),
  ]
  return names.join(' and ')
}

/** Reads them at each send, so that they can change without a restart. */
function configuredHeaders({ headers = [] }: WebhookConfig): Record<string, string> {
  return Object.fromEntries(headers.map(({ name, value }) => [name, readHeader(name, value)]))
}

function readHeader(name: string, secret: Secret): string {
  const value = revealSecret(secret, 'headers')
  const problem = headerValueProblem(value)
  if (problem === undefined) return value
  throw new SinkError('misconfigured', `headers ${name}: ${problem.problem}; ${problem.remedy}`)
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
  unauthorized: ': check the signing secret, the headers and any token in url',
  gone: ': the endpoint is no more; set a new url or remove the sink',
  rejected: ': check that url names the endpoint',
}
