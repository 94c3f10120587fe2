import { startTcpServer, type TcpServer } from '../../support/tcp-server.ts'
import type { BadInput } from './bad-input.ts'
import { badMailAnswers, properReplies, type MailDialogue, type MailStep } from './mail-answers.ts'

export interface MailServers {
  dialogues: BadInput<MailDialogue>[]
  /** Of each dialogue, in their order. */
  ports: number[]
  /** Names of those whose nonsense was said. */
  handedOut: Set<string>
  stop(): Promise<void>
}

/** One server for each dialogue: the first words differ too, and nothing before them tells who asks. */
export async function startMailServers(): Promise<MailServers> {
  const dialogues = badMailAnswers()
  const handedOut = new Set<string>()
  const servers = await Promise.all(
    dialogues.map((dialogue) => startMailServer(dialogue, () => handedOut.add(dialogue.name))),
  )
  return {
    dialogues,
    ports: servers.map(({ port }) => port),
    handedOut,
    stop: async () => void (await Promise.all(servers.map((server) => server.stop()))),
  }
}

function startMailServer(
  { content: dialogue }: BadInput<MailDialogue>,
  onNonsense: () => void,
): Promise<TcpServer> {
  function reply(step: MailStep): { bytes: Buffer; isLast: boolean } {
    const bad = dialogue[step]
    if (bad) onNonsense()
    return { bytes: bad ?? properReplies[step], isLast: bad !== undefined }
  }

  return startTcpServer({
    onConnect(socket) {
      const say = (step: MailStep): void => {
        const { bytes, isLast } = reply(step)
        if (isLast) socket.end(bytes)
        else socket.write(bytes)
      }
      let unread = ''
      let isBody = false
      socket.on('data', (chunk) => {
        unread += chunk.toString('latin1')
        const lines = unread.split('\r\n')
        unread = lines.pop() ?? ''
        for (const line of lines) {
          const step = isBody ? bodyStep(line) : stepOf(line)
          if (step === undefined) continue
          isBody = step === 'DATA' && dialogue.DATA === undefined
          say(step)
        }
      })
      say('greeting')
    },
  })
}

function bodyStep(line: string): MailStep | undefined {
  return line === '.' ? 'end' : undefined
}

function stepOf(line: string): MailStep | undefined {
  const [verb = ''] = line.toUpperCase().split(/[ :]/)
  if (verb === 'HELO') return 'EHLO'
  return (['EHLO', 'MAIL', 'RCPT', 'DATA'] as const).find((step) => step === verb)
}
