/** The demo as a newcomer runs it: it ends by itself or on Ctrl-C, and what it says adds up. */
import { readdirSync, readlinkSync } from 'node:fs'
import { dirname } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type DemoAccount, findDifferences } from '../../src/cli/demo/account.ts'
import { environment, type RunningTocsin, startTocsin } from '../integration/cli/tocsin.ts'

/** What the service or the ledger counts, beside what the ledger or a receiver counts. */
function countsIn(out: string): [what: string, one: string, other: string][] {
  const row = /^(\w+) +(\d+) +(\d+)$/gm
  const events = /^the service showed (\d+) events, (\d+) accounted for/m
  const [, shown = '', found = 'none'] = events.exec(out) ?? []
  const messages = [...out.matchAll(row)].map(
    ([, sink, got = '', sent = '']): [string, string, string] => [`${sink} messages`, got, sent],
  )
  return [...messages, ['events', shown, found]]
}

function folderOf({ soFar }: RunningTocsin): string {
  return dirname(/--config (\S+)/.exec(soFar())?.[1] ?? '')
}

/** The view Now, as the form to sign in leads to it by the name and password that were printed. */
async function openSignedIn(out: string): Promise<string> {
  const [, signIn = '', name = '', password = ''] = /(\S+sign-in)#(\w+):(\w+)/.exec(out) ?? []
  expect(await (await fetch(signIn)).text()).toContain('data-demo')
  const body = new URLSearchParams({ name, password, next: '/' })
  const answer = await fetch(signIn, { method: 'POST', body, redirect: 'manual' })
  const cookie = answer.headers.get('set-cookie')?.split(';')[0] ?? ''
  return (await fetch(new URL('/', signIn), { headers: { cookie } })).text()
}

/** Processes that run in a folder. */
function residents(folder: string): string[] {
  return readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readlinkSync(`/proc/${pid}/cwd`).startsWith(folder)
    } catch {
      return false
    }
  })
}

function expectNothingLeft(folder: string): void {
  expect(folder).toContain('tocsin-demo-')
  expect(readdirSync(environment.TMPDIR)).not.toContain(folder.split('/').at(-1))
  expect(residents(folder)).toEqual([])
}

describe('the demo', () => {
  test('ends by itself, opens the page, shows the receivers live, and what it says adds up', async () => {
    const demo = startTocsin('demo', '--for', '2s')
    await demo.says('Ctrl-C')
    const [, page = ''] = /live: (\S+)/.exec(demo.soFar()) ?? []
    expect((await fetch(page)).status).toBe(200)
    const folder = folderOf(demo)
    expect(residents(folder)).not.toEqual([])
    expect(await openSignedIn(demo.soFar())).toContain('href="/tenants"')
    const { code, out, err } = await demo.ended
    expect({ code, err }).toEqual({ code: 0, err: '' })
    const counts = countsIn(out)
    expect(counts.map(([what]) => what)).toEqual([
      'slack messages',
      'pagerduty messages',
      'email messages',
      'webhook messages',
      'events',
    ])
    expect(counts.filter(([, one, other]) => one !== other)).toEqual([])
    expect(counts.map(([, one]) => one)).not.toContain('0')
    expect(out).toContain('all of it adds up')
    expectNothingLeft(folder)
  })

  test('ends in order on Ctrl-C, with its account', async () => {
    const demo = startTocsin('demo')
    await demo.says('Ctrl-C')
    const folder = folderOf(demo)
    demo.child.kill('SIGINT')
    const { code, out, err } = await demo.ended
    expect(code, `${out}${err}`).toBe(0)
    expect(out).toContain('all of it adds up')
    expect(countsIn(out)).toHaveLength(5)
    expectNothingLeft(folder)
  })

  test('leaves nothing on a second Ctrl-C', async () => {
    const demo = startTocsin('demo')
    await demo.says('Ctrl-C')
    const folder = folderOf(demo)
    demo.child.kill('SIGINT')
    await demo.says('no more events arrive')
    demo.child.kill('SIGINT')
    expect((await demo.ended).code).toBe(130)
    await expect.poll(() => residents(folder)).toEqual([])
    expectNothingLeft(folder)
  })
})

const agreed: DemoAccount = {
  shown: 2,
  found: 2,
  sinks: [
    { sink: 'slack', sent: 2, got: 2 },
    { sink: 'email', sent: 1, got: 1 },
  ],
}

test.each<[string, Partial<DemoAccount>, string[]]>([
  ['nothing where both sides agree', {}, []],
  ['an event that was lost', { found: 1 }, ['1 event that the ledger does not have']],
  [
    'a message that did not arrive',
    { sinks: [{ sink: 'slack', sent: 2, got: 1 }] },
    ['slack got 1 messages, the ledger sent 2'],
  ],
])('the account names %s', (_what, change, expected) => {
  expect(findDifferences({ ...agreed, ...change })).toEqual(expected)
})
