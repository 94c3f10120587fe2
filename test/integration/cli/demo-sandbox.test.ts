import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openDemoFolder } from '../../../src/cli/demo/folder.ts'
import {
  demoIdentifier,
  startDemoSandbox,
  type DemoSandbox,
} from '../../../src/cli/demo/sandbox.ts'
import { wireSearchPage } from '../../../src/upstream/resources/page.ts'
import { silent } from '../../support/ledger.ts'
import { ask, tokenOf } from '../sandbox/client.ts'

const dayMs = 86_400_000

function aFolder(): string {
  const path = mkdtempSync(join(tmpdir(), 'tocsin-demo-'))
  onTestFinished(() => rmSync(path, { recursive: true }))
  return path
}

/** One run of the demo's sandbox; what it showed stands again in the next. */
async function run(path: string, act: (sandbox: DemoSandbox) => unknown): Promise<void> {
  const folder = openDemoFolder({ path, isFresh: false, seed: undefined })
  await folder.settlePorts()
  const sandbox = await startDemoSandbox({ folder, rate: 1, logger: silent })
  try {
    await act(sandbox)
  } finally {
    await sandbox.close()
    folder.close()
  }
}

test('a late event counts as shown only by a sweep that began after it arrived, also a run later', async () => {
  const path = aFolder()
  const later = (): number => Date.now() + 1_000
  let late = ''
  await run(path, (sandbox) => {
    const before = new Set(sandbox.events().map(({ uid }) => uid))
    sandbox.showLate(2 * dayMs)
    const [event] = sandbox.events().filter(({ uid }) => !before.has(uid))
    late = event!.uid
    expect(event!.arrivedAtMs - event!.createdAtMs).toBe(2 * dayMs)
    expect(sandbox.shownAt(event!.groupIds[0]!, later())).not.toContain(late)
    expect(sandbox.shownAt(event!.groupIds[0]!, later())).not.toHaveLength(0)
    expect(sandbox.shownAt(event!.groupIds[0]!, later(), later())).toContain(late)
  })
  await run(path, (sandbox) => {
    const shown = (sweptAtMs?: number): string[] =>
      [1042, 1043].flatMap((group) => sandbox.shownAt(group, later(), sweptAtMs))
    expect(shown()).not.toContain(late)
    expect(shown(later())).toContain(late)
  })
})

test('credentials stand in the feed of their identifier, and again a run later', async () => {
  const path = aFolder()
  const idsIn = async (sandbox: DemoSandbox): Promise<string[]> => {
    const token = await tokenOf(sandbox, sandbox.apiKeys[0])
    const feed = `/firework/v3/identifiers/${demoIdentifier.id}/feed/credentials?size=1000`
    const ids: string[] = []
    for (let from = ''; ;) {
      const headers = { authorization: `Bearer ${token}` }
      const page = wireSearchPage.parse((await ask(sandbox.url + feed + from, { headers })).json)
      ids.push(...page.items.map((item) => `credential/${(item as { id: number }).id}`))
      if (!page.next) return ids
      from = `&from=${encodeURIComponent(page.next)}`
    }
  }
  let first: string[] = []
  await run(path, async (sandbox) => {
    sandbox.showCredentials(5)
    first = sandbox.credentials().map(({ id }) => `credential/${id}`)
    expect(first).toHaveLength(5)
    expect(sandbox.credentialsShownAt(Date.now() + 1_000)).toEqual(first)
    expect(sandbox.credentialsShownAt(Date.now() - 60_000)).toEqual([])
  })
  await run(path, async (sandbox) => {
    sandbox.showCredentials(1)
    expect(new Set(sandbox.credentialsShownAt(Date.now() + 1_000)).size).toBe(6)
    expect(await idsIn(sandbox)).toEqual(expect.arrayContaining(first))
    expect(await idsIn(sandbox)).toHaveLength(6)
  })
})
