import { expect, test } from 'vitest'
import { createCircuit } from '../../src/delivery/circuit.ts'
import { readAccounting } from '../../src/store/accounts.ts'
import { createKeys } from '../../src/redis/keys.ts'
import { startSandbox } from '../../src/sandbox/sandbox.ts'
import { tocsin, aFile } from '../integration/cli/tocsin.ts'
import { expectConservation } from '../support/ledger.ts'
import { startRedis } from '../support/redis.ts'
import { aReplica, nothingPending, until } from '../support/rehearsal.ts'

test('a Slack channel that is gone: e-mail has one summary with the command, and nothing comes back', async () => {
  const redis = await startRedis()
  const sandbox = await startSandbox({
    organizations: [
      { id: 7, limits: { search: 20, basic: 20 }, keys: [{ key: 'fw_sandbox', tenants: [42] }] },
    ],
  })
  const yaml = `
redis: {url: '${redis.url}'}
http: {port: 0}
accounts: {main: {base_url: '${sandbox.url}', link_hosts: [app.example.com], api_key: fw_sandbox, limits: {search: 20, basic: 20}}}
feeds: {brand: {type: events, identifier_group: 1042, detail: [], every: 5s}}
sinks:
  soc: {type: slack, url: '${sandbox.slackUrl}', allow_private: true, limit: 20/s, fallback: oncall}
  oncall: {type: email, smtp: '${sandbox.smtpUrl}', from: tocsin@example.com, to: [ann@example.com], tls: off}
route: {sinks: [soc], group_wait: 0s}
`
  const replica = aReplica(yaml)
  const { pathname } = new URL(sandbox.slackUrl)
  const mend = sandbox.faults.add({ on: pathname, effect: 'status', status: 410 })
  const { slack, email } = sandbox.received
  try {
    const { url } = await replica.start()
    const [ledger] = replica.ledgers
    await until('the feed is read to its end', async () => {
      return (await ledger!.redis.hget(ledger!.key('feed', 'brand'), 'caught_up')) !== null
    })
    sandbox.addEvents(6, { severity: 'high', ignoredAtMs: null })
    await until('the mail is there', () => email.length > 0)
    const text = email[0]!.mail!.text.replaceAll(/\s+/g, ' ')
    const command =
      /tocsin (items resend --sink soc --state diverted --since \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)/.exec(
        text,
      )
    expect(email[0]!.mail!.subject).toContain('6 events could not be delivered to soc')
    expect(command).not.toBeNull()
    await until('all is settled', () => nothingPending(replica))
    const disabled = 'tocsin_sink_circuit_state{sink="soc",state="disabled"} 1'
    await until('the metrics say so', async () =>
      (await (await fetch(`${url}/metrics`)).text()).includes(disabled),
    )

    mend()
    await createCircuit(ledger!.redis, createKeys('tocsin')).pause('soc', undefined)
    const [fresh] = sandbox.addEvents(1, { severity: 'high', ignoredAtMs: null })
    await until('Slack has what came since', () => slack.length > 0)
    await until('all is settled again', () => nothingPending(replica))
    expect(slack.map(({ uids }) => uids)).toEqual([[fresh!.uid]])
    await expectConservation(ledger!)
    expect((await readAccounting(ledger!)).sinks['soc']).toMatchObject({
      diverted: 6,
      delivered: 1,
    })

    const config = ['--config', aFile('tocsin.yaml', yaml), '--yes']
    const resent = await tocsin(...command![1]!.split(' '), ...config)
    expect(resent.out).toContain('6 items queued')
    await until('Slack has them all', () => slack.length === 7)
    await until('all is settled at last', () => nothingPending(replica))
    expect(email).toHaveLength(1)
    await expectConservation(ledger!)
  } finally {
    await replica.stop()
    await sandbox.close()
    await redis.stop()
  }
})
