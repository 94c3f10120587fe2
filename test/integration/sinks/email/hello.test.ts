/** What the sink calls itself to the mail server. */
import os from 'node:os'
import { expect, onTestFinished, test, vi } from 'vitest'
import { createLogger } from '../../../../src/lib/logger.ts'
import { secretFromText } from '../../../../src/lib/secret.ts'
import { createEmailSink } from '../../../../src/sinks/email/email-sink.ts'
import { aDelivery } from '../../../support/deliveries.ts'
import { stillClock } from '../../../support/still-clock.ts'
import { startRawSmtpServer } from './raw-smtp-server.ts'

test.each([
  ['127.0.0.1', 'tocsin-7f9c', undefined, '[127.0.0.1]'],
  ['::1', 'tocsin-7f9c', undefined, '[IPv6:::1]'],
  ['::1', 'localhost.localdomain', undefined, '[IPv6:::1]'],
  ['::1', '10.0.0.5', undefined, '[IPv6:::1]'],
  ['::1', 'host_with.underscore', undefined, '[IPv6:::1]'],
  ['::1', 'soc-1.example.com', undefined, 'soc-1.example.com'],
  ['::1', 'soc-1.example.com', 'mail.example.org', 'mail.example.org'],
  ['::1', 'soc-1.example.com', '[10.0.0.5]', '[10.0.0.5]'],
])('from %s, on a host called %s, with hello %s it is %s', async (address, name, hello, said) => {
  const host = vi.spyOn(os, 'hostname').mockReturnValue(name)
  onTestFinished(() => host.mockRestore())
  const server = await startRawSmtpServer(address)
  onTestFinished(() => server.refuse())
  const at = address.includes(':') ? `[${address}]` : address
  const sink = createEmailSink(
    {
      name: 'oncall',
      type: 'email',
      smtp: secretFromText(`smtp://${at}:${server.port}`),
      from: 'tocsin@example.com',
      to: ['oncall@example.com'],
      tls: 'required',
      hello,
      limitPerSecond: undefined,
      digest: undefined,
      reveal: false,
      autoSubmitted: true,
    },
    { logger: createLogger({ level: 'silent' }), clock: stillClock() },
  )
  onTestFinished(() => sink.close())
  await sink.send(aDelivery(sink), { signal: AbortSignal.timeout(60_000) })
  expect(server.commands[0]).toBe(`EHLO ${said}`)
})
