/**
 * An SMTP server in the raw: says what a test wants at any step, and can cut the connection or fall
 * silent there. TLS only where a test scripts `220` to STARTTLS; AUTH PLAIN is offered and taken.
 * Mails taken whole are kept, answered or not.
 */
import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { testCertificate, testKey } from './test-certificate.ts'

export type Step =
  | 'GREETING'
  | 'EHLO'
  | 'HELO'
  | 'STARTTLS'
  | 'AUTH'
  | 'MAIL'
  | 'RCPT'
  | 'DATA'
  | 'BODY'
  | 'END'

/**
 * A reply line; `cut`: the connection is reset instead, `close`: ended; `hang`: nothing is said, of BODY
 * nothing read. 220 to STARTTLS begins TLS, `220 hang` says so and never does.
 */
export type Replies = Partial<Record<Step, string>>

export interface RawSmtpServer {
  readonly port: number
  /** `DATA` to the final dot, unstuffed, oldest first. */
  readonly mails: string[]
  /** Every command line, oldest first. */
  readonly commands: string[]
  script(replies: Replies): void
  openConnections(): number
  /** The step that waits for a reply because the script says `hang`; undefined: none does. */
  hangsAt(): Step | undefined
  /** Connections ever opened. */
  connections(): number
  refuse(): Promise<void>
  listen(): Promise<void>
}

const usual: Record<Step, string> = {
  GREETING: '220 raw.test ESMTP',
  EHLO: '250-raw.test\r\n250-AUTH PLAIN\r\n250 8BITMIME',
  HELO: '250 raw.test',
  STARTTLS: '502 5.5.1 no',
  AUTH: '235 2.7.0 welcome',
  MAIL: '250 2.1.0 ok',
  RCPT: '250 2.1.5 ok',
  DATA: '354 go on',
  BODY: '',
  END: '250 2.0.0 queued as 4F3A',
}

export async function startRawSmtpServer(host = '127.0.0.1'): Promise<RawSmtpServer> {
  const sockets = new Set<Socket>()
  const mails: string[] = []
  const commands: string[] = []
  let replies: Replies = {}
  let port = 0
  let connections = 0
  let hanging: Step | undefined

  function reply(socket: Socket, step: Step): boolean {
    const text = replies[step] ?? usual[step]
    if (text === 'cut') socket.resetAndDestroy()
    else if (text === 'close') socket.end()
    else if (text === 'hang') {
      hanging = step
      if (step === 'BODY') socket.pause()
    } else if (text !== '') socket.write(`${text}\r\n`)
    return /^[23]/.test(text)
  }

  function serve(socket: Socket): void {
    let isBody = false
    let buffer = ''
    socket.on('data', (chunk) => {
      buffer += chunk.toString('latin1')
      if (isBody && replies.BODY !== undefined) reply(socket, 'BODY')
      for (let end = endOf(buffer); end !== undefined; end = endOf(buffer)) {
        const part = buffer.slice(0, end.at)
        buffer = buffer.slice(end.at + end.length)
        if (isBody) {
          mails.push(part.replaceAll('\r\n..', '\r\n.'))
          isBody = false
          reply(socket, 'END')
        } else if (part === 'STARTTLS' && replies.STARTTLS?.startsWith('220') === true) {
          commands.push(part)
          return beginTls(socket, replies.STARTTLS === '220 hang')
        } else isBody = command(socket, part)
      }
    })
    const endOf = (text: string): { at: number; length: number } | undefined => {
      const mark = isBody ? '\r\n.\r\n' : '\r\n'
      const at = text.indexOf(mark)
      return at === -1 ? undefined : { at, length: mark.length }
    }
  }

  function beginTls(socket: Socket, isSilent: boolean): void {
    socket.removeAllListeners('data')
    socket.write('220 go on\r\n')
    if (isSilent) {
      hanging = 'STARTTLS'
      return
    }
    const secured = new TLSSocket(socket, { isServer: true, key: testKey, cert: testCertificate })
    secured.on('error', () => undefined)
    serve(secured)
  }

  function command(socket: Socket, line: string): boolean {
    commands.push(line)
    const verb = line === 'STARTTLS' ? line : line.slice(0, 4).toUpperCase()
    if (verb === 'QUIT') socket.write('250 ok\r\n')
    else if (verb in usual) return reply(socket, verb as Step) && verb === 'DATA'
    else socket.write('502 what\r\n')
    return false
  }

  const server = createServer((socket) => {
    connections += 1
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
    serve(socket)
    reply(socket, 'GREETING')
  })

  function dropConnections(): void {
    for (const socket of sockets) socket.destroy()
  }

  async function listen(): Promise<void> {
    if (server.listening) return
    server.listen(port, host)
    await once(server, 'listening')
    port = (server.address() as AddressInfo).port
  }

  async function refuse(): Promise<void> {
    if (!server.listening) return
    const closed = once(server, 'close')
    server.close()
    dropConnections()
    await closed
  }

  await listen()
  return {
    port,
    mails,
    commands,
    script(next) {
      replies = next
      hanging = undefined
    },
    hangsAt: () => hanging,
    openConnections: () => sockets.size,
    connections: () => connections,
    refuse,
    listen,
  }
}
