import { Command } from 'commander'
import { endWindowNow, type DigestSink } from '../digest/digest-turn.ts'
import { withTurns, type CommandTurns } from './command-turns.ts'
import { loadConfigFile } from './config-file.ts'
import { addCommonOptions, print, type CommonOptions, type Context } from './context.ts'
import { digestSinkOf } from './digest-sink.ts'
import { previewDigest, type PreviewOptions } from './digests-preview.ts'
import { redisNow } from './open-ledger.ts'
import { harmless } from './words.ts'

export function digestsCommand(context: Context): Command {
  const preview = addCommonOptions(new Command('preview'))
    .description('what the next digest would say now; changes nothing')
    .argument('<sink>', 'name of a sink with a digest')
    .option('--recipient <address>', 'of an e-mail sink (default: its first)')
    .option('--html <file>', 'write the HTML part of the mail into this file')
    .action((name: string, options: PreviewOptions) => previewDigest(context, name, options))
  const send = addCommonOptions(new Command('send'))
    .description('end the window of a digest now and send it')
    .argument('<sink>', 'name of a sink with a digest')
    .action((name: string, options: CommonOptions) => sendDigests(context, name, options))
  return new Command('digests').addCommand(preview).addCommand(send)
}

interface SentDigest {
  destination: string
  /** `being_made`: a replica makes it just now. */
  outcome: 'queued' | 'nothing_to_tell' | 'being_made'
}

async function sendDigests(context: Context, name: string, options: CommonOptions): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const { digests, blocked } = await withTurns(config, async (parts) => {
    const sink = digestSinkOf(parts, config, name)
    const made: SentDigest[] = []
    for (const { id, label } of parts.sinks.get(name)?.destinations ?? []) {
      const messages = await endWindowNow(parts.turns, sink, id)
      made.push({ destination: label, outcome: outcomeOf(sink, messages) })
    }
    return { digests: made, blocked: await blockedBy(parts, name) }
  })
  print(context, options, {
    json: { sink: name, digests, blocked: blocked ?? null },
    lines: () => [
      ...digests.map((digest) => sentLine(name, digest)),
      ...(blocked === undefined ? [] : [`  ${name} ${blocked}: it goes out when that is over`]),
    ],
  })
}

function outcomeOf({ digest }: DigestSink, messages: number | undefined): SentDigest['outcome'] {
  if (messages === 0 && !digest.sendsEmpty) return 'nothing_to_tell'
  return messages === 0 || messages === undefined ? 'being_made' : 'queued'
}

/** Why nothing is sent to the sink just now. */
async function blockedBy(
  { circuit, ledger }: CommandTurns,
  name: string,
): Promise<string | undefined> {
  const { state, paused } = await circuit.read(name, await redisNow(ledger))
  if (paused) return `is paused (${harmless(paused.reason)})`
  if (state === 'disabled') return 'is disabled: its address is no more'
  return state === 'open' ? 'has its circuit open' : undefined
}

const outcomeWords: Record<SentDigest['outcome'], string> = {
  queued:
    'its digest is queued, a running daemon sends it within seconds; the next window has begun',
  nothing_to_tell: 'there is nothing to tell, and an empty digest is not wanted (send_empty)',
  being_made: 'a running daemon makes its digest just now',
}

function sentLine(sink: string, { destination, outcome }: SentDigest): string {
  const place = destination === sink ? sink : `${sink}, ${destination}`
  return `${harmless(place)}: ${outcomeWords[outcome]}`
}
