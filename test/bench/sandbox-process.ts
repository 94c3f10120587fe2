/** The sandbox as a process of its own, so that its work is not counted as ours. Ends with its parent. */
import { startSandbox } from '../../src/sandbox/sandbox.ts'
import type { SandboxAnswer, SandboxAsk } from './sandbox-child.ts'

const sandbox = await startSandbox({ keep: 1_000, enforceLimits: false })

function answer({ events, credentials }: SandboxAsk): SandboxAnswer {
  if (events) sandbox.addEvents(events.count, events.given)
  if (credentials) sandbox.addCredentials(credentials.count, credentials.given)
  const { user, system } = process.cpuUsage()
  const { url, webhookUrl, webhookSecret, apiKeys } = sandbox
  return {
    url,
    webhookUrl,
    webhookSecret,
    apiKey: apiKeys[0] ?? '',
    cpuSeconds: (user + system) / 1e6,
  }
}

process.on('message', (ask: SandboxAsk) => process.send?.(answer(ask)))
process.on('disconnect', () => void sandbox.close())
