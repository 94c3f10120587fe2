/** What `monitoring` plans from what the file asks for and what the service has. */
import { expect, test } from 'vitest'
import { parseMonitoring, toDesiredState } from '../../../../src/cli/monitoring/monitoring-file.ts'
import { type Actual, type ActualAsset, planChanges } from '../../../../src/cli/monitoring/plan.ts'

const none: Actual = {
  assets: [],
  policies: [],
  assigned: new Map(),
}

function asset(given: Partial<ActualAsset>): ActualAsset {
  return {
    id: 5,
    name: 'a',
    type: 'keyword',
    data: { keyword: 'x' },
    isDisabled: false,
    search_types: ['leak', 'paste'],
    risks: [3, 4, 5],
    experimental_search_types: [],
    ...given,
  }
}

/** One step as `replace asset a risks`. */
function stepsOf(file: string, actual: Partial<Actual>, prune = false): string[] {
  const desired = toDesiredState(parseMonitoring(file, 'monitoring.yaml', {}).content)
  return planChanges(desired, { ...none, ...actual }, prune).steps.map((step) =>
    [
      step.do,
      step.key,
      ...('fields' in step ? step.fields : []),
      ...('assets' in step ? step.assets : []),
    ].join(' '),
  )
}

const assetCases: [what: string, written: string, there: Partial<ActualAsset>, steps: string[]][] =
  [
    ['the same', '', {}, []],
    ['lists in another order', 'search_types: [paste, leak], risks: [5, 4, 3]', {}, []],
    ['a word twice', 'search_types: [leak, paste, leak]', {}, []],
    ['other search types', 'search_types: [leak]', {}, ['replace asset a search_types']],
    ['other risks', 'risks: [5]', {}, ['replace asset a risks']],
    ['no risks', 'risks: []', {}, ['replace asset a risks']],
    [
      'further search types',
      'experimental_search_types: [x]',
      {},
      ['replace asset a experimental_search_types'],
    ],
    ['other data', '', { data: { keyword: 'y' } }, ['replace asset a data.keyword']],
    ['a case that counts', '', { data: { keyword: 'X' } }, ['replace asset a data.keyword']],
    ['data that the service added', '', { data: { keyword: 'x', more: 1, type: 'keyword' } }, []],
    [
      'a secret',
      'type: secret, data: { secret: y }',
      { type: 'secret', data: { secret: 'z' } },
      [],
    ],
    [
      'an identity that is not shown',
      'type: identity, data: { attributes: [{ type: ip }] }',
      { type: 'identity', data: { uuid: 'u' } },
      [],
    ],
    [
      'an identity that is shown',
      'type: identity, data: { attributes: [{ type: ip }] }',
      { type: 'identity', data: { attributes: [] } },
      ['replace asset a data.attributes'],
    ],
    ['another name', '', { name: 'b' }, ['create asset a']],
    ['another type', '', { type: 'username' }, ['create asset a']],
    ['enabled left out', '', { isDisabled: true }, []],
    ['enabled', 'enabled: true', { isDisabled: true }, ['enable asset a']],
    ['disabled', 'enabled: false', {}, ['disable asset a']],
    ['new and disabled', 'enabled: false', { name: 'b' }, ['create asset a', 'disable asset a']],
  ]

test.each(assetCases)('an asset with %s', (_what, written, there, steps) => {
  const keys = { type: 'keyword', data: '{ keyword: x }', search_types: '[leak, paste]' }
  const others = Object.entries(keys).filter(([key]) => !` ${written}`.includes(` ${key}:`))
  const fields = [...others.map(([key, value]) => `${key}: ${value}`), written].filter(Boolean)
  const file = `assets: { a: { ${fields.join(', ')} } }`
  expect(stepsOf(file, { assets: [asset(there)] })).toEqual(steps)
})

const twoAssets = (first: string, second: string, value = 'x'): string => `assets:
  a: { type: keyword, data: { keyword: x }, search_types: [leak, paste], policies: [${first}] }
  b: { type: keyword, data: { keyword: x }, search_types: [leak, paste], policies: [${second}] }
policies:
  p: { included_keywords: [${value}] }
`
const policy = { uuid: 'u1', name: 'p', type: 'INCLUDED_KEYWORDS', value: { keywords: ['x'] } }
const assets = [asset({}), asset({ id: 6, name: 'b' })]

test.each<[what: string, file: string, actual: Partial<Actual>, steps: string[]]>([
  ['new', twoAssets('p', 'p'), {}, ['create policy p', 'assign policy p a b']],
  ['there, and no asset has it', twoAssets('p', ''), { policies: [policy] }, ['assign policy p a']],
  ['the same', twoAssets('p', ''), { policies: [policy], assigned: new Map([['u1', [5]]]) }, []],
  [
    'of a third asset, too',
    twoAssets('p', ''),
    { policies: [policy], assigned: new Map([['u1', [9, 5]]]) },
    [],
  ],
  [
    'changed, and moved from one asset to the other',
    twoAssets('', 'p', 'y'),
    { policies: [policy], assigned: new Map([['u1', [5]]]) },
    ['update policy p', 'assign policy p b', 'unassign policy p a'],
  ],
  [
    'of another type there',
    twoAssets('p', ''),
    { policies: [{ ...policy, type: 'EXCLUDED_KEYWORDS' }], assigned: new Map([['u1', [5]]]) },
    ['create policy p', 'assign policy p a'],
  ],
])('a policy that is %s', (_what, file, actual, steps) => {
  expect(stepsOf(file, { assets, ...actual })).toEqual(steps)
})

test('the step order: a policy before what has it, enabling after it, deletions last', () => {
  const file = twoAssets('p', 'p').replace(
    'policies: [p] }\n  b',
    'enabled: true, policies: [p] }\n  b',
  )
  const there = [asset({ isDisabled: true }), asset({ id: 7, name: 'old' })]
  const old = { ...policy, uuid: 'u9', name: 'old' }
  expect(stepsOf(file, { assets: there, policies: [old] }, true)).toEqual([
    'create policy p',
    'create asset b',
    'assign policy p a b',
    'enable asset a',
    'delete policy u9',
    'delete asset 7',
  ])
})

test('a section that the file lacks is not pruned', () => {
  const file = 'assets: { a: { type: keyword, data: { keyword: x }, search_types: [leak, paste] } }'
  expect(stepsOf(file, { assets, policies: [policy] }, true)).toEqual(['delete asset 6'])
  expect(stepsOf('clean_past_events: false', { assets, policies: [policy] }, true)).toEqual([])
})
