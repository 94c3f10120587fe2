/**
 * What Microsoft 365 has for a program that sends mail: a token server like Entra's, and a mail server
 * that takes XOAUTH2 alone, like Exchange's. Both real, on loopback.
 */
import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { SMTPServer } from 'smtp-server'
import { type HttpServer, type ScriptedAnswer, startHttpServer } from './http-server.ts'

export const application = {
  tenant: '8f3a2c6e-0000-4000-8000-aaaaaaaaaaaa',
  clientId: '11112222-bbbb-3333-cccc-4444dddd5555',
  clientSecret: 'Kq8~client-secret-of-the-app.7Zx',
  scope: 'https://outlook.office365.com/.default',
  mailbox: 'alerts@example.com',
}

export interface Microsoft {
  readonly tokens: HttpServer
  readonly tokenUrl: string
  /** Without a password. */
  readonly smtpUrl: string
  /** Every token given, oldest first. */
  readonly given: string[]
  readonly mails: string[]
  /** Of each try to sign in, whether it was let in. */
  readonly logins: boolean[]
  /** Tokens that were given until now are refused. */
  withdraw(): void
  /** Who has a right to nothing; undefined: all is in order again. */
  refuseAll(answer: string | undefined): void
  /** Answers the next requests for tokens so; undefined: as usual. */
  answerTokens(answer: ScriptedAnswer | undefined): void
  dropConnections(): void
  stop(): Promise<void>
}

export async function startMicrosoft(): Promise<Microsoft> {
  const given: string[] = []
  const mails: string[] = []
  const logins: boolean[] = []
  const sockets = new Set<Socket>()
  let valid = new Set<string>()
  let refused: string | undefined
  let scripted: ScriptedAnswer | undefined
  const tokens = await startHttpServer()
  tokens.script(({ path, body }) => {
    if (scripted !== undefined) return scripted
    const refusal = entraRefusal(path, new URLSearchParams(body))
    if (refusal !== undefined) return entraError(...refusal)
    const token = `eyJ0eXAiOiJKV1Qi.${given.length}Qx7vK2mZp9LrT4wYb8N_Dc.s-G~h/J+f5uXe3==`
    given.push(token)
    valid.add(token)
    return json(200, { token_type: 'Bearer', expires_in: 3599, access_token: token })
  })
  const server = new SMTPServer({
    authMethods: ['XOAUTH2'],
    allowInsecureAuth: true,
    disabledCommands: ['STARTTLS'],
    disableReverseLookup: true,
    closeTimeout: 1,
    onAuth({ username, accessToken = '' }, _session, callback) {
      const isIn =
        refused === undefined && username === application.mailbox && valid.has(accessToken)
      logins.push(isIn)
      if (isIn) return callback(null, { user: username })
      const words = refused ?? '535 5.7.3 Authentication unsuccessful [AM0PR01CA0001]'
      const refusal = Object.assign(new Error(words.slice(4)), {
        responseCode: Number(words.slice(0, 3)),
      })
      callback(refusal)
    },
    onData(stream, _session, callback) {
      let mail = ''
      stream.on('data', (chunk: Buffer) => (mail += chunk.toString('latin1')))
      stream.on('end', () => {
        mails.push(mail)
        callback()
      })
    },
  })
  server.on('error', () => undefined)
  server.server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
  const { port } = server.server.address() as AddressInfo
  function dropConnections(): void {
    for (const socket of sockets) socket.destroy()
  }
  return {
    tokens,
    tokenUrl: `${tokens.url}/${application.tenant}/oauth2/v2.0/token`,
    smtpUrl: `smtp://${encodeURIComponent(application.mailbox)}@127.0.0.1:${port}`,
    given,
    mails,
    logins,
    withdraw: () => void (valid = new Set()),
    refuseAll: (answer) => void (refused = answer),
    answerTokens: (answer) => void (scripted = answer),
    dropConnections,
    async stop() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      dropConnections()
      await Promise.all([closed, tokens.stop()])
    },
  }
}

/** As Entra refuses: the word of RFC 6749, and its own number and words. */
function entraRefusal(
  path: string,
  asked: URLSearchParams,
): [word: string, number: number, words: string] | undefined {
  const [, tenant, ...rest] = path.split('/')
  if (rest.join('/') !== 'oauth2/v2.0/token' || asked.get('grant_type') !== 'client_credentials') {
    return ['invalid_request', 900144, "The request body must contain 'grant_type'."]
  }
  if (tenant !== application.tenant) {
    return ['invalid_request', 90002, `Tenant '${tenant}' not found. Check the tenant ID.`]
  }
  if (asked.get('client_id') !== application.clientId) {
    const words = `Application '${asked.get('client_id')}' was not found in the directory.`
    return ['unauthorized_client', 700016, words]
  }
  if (asked.get('client_secret') !== application.clientSecret) {
    const words = `Invalid client secret provided: ${asked.get('client_secret')}`
    return ['invalid_client', 7000215, words]
  }
  if (asked.get('scope') !== application.scope) {
    return ['invalid_scope', 1002012, `The provided scope ${asked.get('scope')} is not valid.`]
  }
  return undefined
}

function entraError(error: string, number: number, words: string): ScriptedAnswer {
  const description = `AADSTS${number}: ${words} Trace ID: 255d1aef-8c98 Timestamp: 2026-11-26`
  const status = error === 'invalid_client' ? 401 : 400
  return json(status, { error, error_description: description, error_codes: [number] })
}

function json(status: number, body: object): ScriptedAnswer {
  return { status, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
}
