import { expect, test } from 'vitest'
import type { LedgerState } from '../../../src/operator/ledger-state.ts'
import { rankAccounts } from '../../../src/page/questions/tenants.ts'

const problem = { status: 'problem', detail: 'down', remedy: 'mend it' } as const

test('a sink or a feed that is named like an account is no trouble of that account', () => {
  const state = {
    accounts: [{ name: 'acme' }, { name: 'zeta' }],
    feeds: [{ feed: { name: 'acme', account: 'zeta' } }],
    problems: [
      { ...problem, check: 'delivery', subject: 'acme' },
      { ...problem, check: 'feed', subject: 'acme' },
    ],
  } as unknown as LedgerState
  const ranked = rankAccounts(state).map(({ account, own }) => [account, own.length])
  expect(ranked).toEqual([
    ['zeta', 1],
    ['acme', 0],
  ])
})
