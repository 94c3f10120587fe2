/** A search by identifier, login or host over several accounts. */
import { expect, test } from 'vitest'
import type { Asker } from '../../../src/page/asker.ts'
import { localUser } from '../../../src/page/access/user.ts'
import { searchQuestion } from '../../../src/page/questions/search.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { redisForTests, routed, takeIn } from '../../support/ledger.ts'
import { cursorIn } from '../../support/page-rig.ts'

const tests = redisForTests()

async function show(ledger: AccountLedger, count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) {
    const uid = `${ledger.account}/b/${n}`
    const event = routed({ uid, identifiers: [{ id: 1, name: 'acme.com' }] })
    await takeIn(ledger, [{ ...event, victims: { logins: ['joe@acme.com'], hosts: ['PC'] } }])
  }
}

test.each(['acme.com', 'joe@acme.com', 'pc'])(
  'for %s finds each event of every account, on one page',
  async (q) => {
    const keys = tests.keys()
    const ledgers: AccountLedger[] = []
    for (const [account, count] of [
      ['c', 2],
      ['a', 3],
      ['none', 0],
      ['b', 1],
    ] as const) {
      const ledger = await tests.ledger({ keys, account })
      await show(ledger, count)
      ledgers.push(ledger)
    }
    for (const limit of [1, 2, 3, 4, 6, 9]) {
      const pages: string[][] = []
      let cursor: string | undefined
      do {
        const query = searchQuestion.query.parse({ q, limit, cursor })
        const { results, next } = await searchQuestion.ask(
          { user: localUser, ledgers } as unknown as Asker,
          query,
        )
        pages.push(results.map(({ uid }) => uid))
        cursor = cursorIn(next)
      } while (cursor !== undefined)
      const uids = ['a/b/0', 'a/b/1', 'a/b/2', 'b/b/0', 'c/b/0', 'c/b/1']
      expect(pages.flat().toSorted()).toEqual(uids)
      expect(pages.map((page) => page.length)).toEqual(
        Array.from({ length: Math.ceil(6 / limit) }, (_none, at) =>
          Math.min(limit, 6 - at * limit),
        ),
      )
    }
  },
)
