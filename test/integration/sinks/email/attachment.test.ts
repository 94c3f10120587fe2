import { gunzipSync, gzipSync } from 'node:zlib'
import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../../../src/lib/clock.ts'
import { secretFromText } from '../../../../src/lib/secret.ts'
import { createEmailSink } from '../../../../src/sinks/email/email-sink.ts'
import { aDelivery } from '../../../support/deliveries.ts'
import { silent } from '../../../support/ledger.ts'
import { aBusyDigest } from '../../../support/summaries.ts'
import { startRawSmtpServer } from './raw-smtp-server.ts'

test('an attached file arrives byte for byte, beside the two parts of the text', async () => {
  const server = await startRawSmtpServer()
  const sink = createEmailSink(
    {
      name: 'oncall',
      type: 'email',
      smtp: secretFromText(`smtp://127.0.0.1:${server.port}`),
      from: 'Tocsin <tocsin@example.com>',
      to: ['oncall@example.com'],
      tls: 'required',
      limitPerSecond: undefined,
      digest: undefined,
      reveal: false,
      autoSubmitted: true,
    },
    { logger: silent, clock: systemClock },
  )
  onTestFinished(async () => {
    await sink.close()
    await server.refuse()
  })
  expect(sink.canAttach).toBe(true) // what makes the file at all
  const table = Array.from({ length: 5000 }, (_, index) => `"${index}"\r\n`).join('')
  const attachment = {
    fileName: 'tocsin-digest-2026-11-21.csv.gz',
    contentType: 'application/gzip',
    content: new Uint8Array(gzipSync(table)),
  }
  const delivery = aDelivery(sink, { ...aBusyDigest(3), attachment })
  await sink.send(delivery, { signal: AbortSignal.timeout(45_000) })

  const raw = server.mails[0] ?? ''
  expect(raw).toMatch(/^Content-Type: multipart\/mixed/m)
  expect(raw).toMatch(/^Content-Type: multipart\/alternative/m)
  const file = raw.slice(raw.search(/^Content-Type: application\/gzip/m))
  expect(file).toMatch(/filename=tocsin-digest-2026-11-21\.csv\.gz/)
  const encoded = /\r\n\r\n([A-Za-z0-9+/=\r\n]+?)\r\n--/.exec(file)?.[1] ?? ''
  expect(gunzipSync(Buffer.from(encoded, 'base64')).toString()).toBe(table)
})
