/** Whatever the file and the service say, a plan leads from one to the other, and no policy lapses on its way. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  toKnownAsset,
  inspectAsset,
  readActual,
  readUndescribed,
  refreshState,
  findUnseenAssets,
} from '../../../../src/cli/monitoring/actual.ts'
import { applyStep } from '../../../../src/cli/monitoring/apply.ts'
import {
  type Adoption,
  refuseUnresolved,
  applyAdoptions,
} from '../../../../src/cli/monitoring/adoptions.ts'
import {
  type MonitoringContent,
  type DesiredState,
  toDesiredState,
} from '../../../../src/cli/monitoring/monitoring-file.ts'
import { planChanges, type PlanInput, type Step } from '../../../../src/cli/monitoring/plan.ts'
import {
  findAsset,
  emptyState,
  type MonitoringState,
  findPolicy,
} from '../../../../src/cli/monitoring/state-file.ts'
import { canonicalJson } from '../../../../src/feed-types/field-reader.ts'
import type { WireAsset } from '../../../../src/upstream/resources/assets.ts'
import { UpstreamError } from '../../../../src/upstream/error.ts'
import { type Failing, type Model, modelService } from './model-service.ts'
import { runs } from '../../../support/runs.ts'

/** One of them is a name that every object knows. */
const policyKeys = ['p', 'q', 'constructor'] as const
const assetKeys = ['a', 'b', 'constructor'] as const

const aPolicy = fc.oneof(
  fc.constantFrom(['leak'], ['dump', 'leak']).map((words) => ({ included_keywords: words })),
  fc.constantFrom(['job'], ['ad']).map((words) => ({ excluded_keywords: words })),
)

const anAsset = fc.record({
  type: fc.constant('keyword' as const),
  data: fc.constantFrom('a', 'b').map((keyword) => ({ keyword })),
  search_types: fc.constantFrom(['leaks' as const], ['paste' as const, 'leaks' as const]),
  risks: fc.constantFrom(undefined, [4, 5], []),
  enabled: fc.constantFrom(true, false, undefined),
  policies: fc.subarray([...policyKeys]),
})

/** Files in which an asset names only policies that are there. */
const aFile = fc
  .record({
    assets: fc.dictionary(fc.constantFrom(...assetKeys), anAsset),
    policies: fc.dictionary(fc.constantFrom(...policyKeys), aPolicy),
  })
  .map(({ assets, policies }): DesiredState => {
    const known = (policy: string): boolean => Object.hasOwn(policies, policy)
    const entries = Object.entries(assets).map(([key, asset]) => [
      key,
      { ...asset, policies: asset.policies.filter(known) },
    ])
    const content = { assets: Object.fromEntries(entries), policies, clean_past_events: false }
    return toDesiredState(
      content as unknown as MonitoringContent,
      (parts) => `digest of ${parts.join()}`,
    )
  })

/** An identifier of nobody's file. */
const outsider = 77

/**
 * What others do meanwhile: they take a policy away, or give one, to an outsider too, or delete one; and where the
 * service shows its assets, they change or delete one of those, too.
 */
type Drift = (model: Model, state: MonitoringState) => void

const aDrift: fc.Arbitrary<Drift> = fc
  .record({
    act: fc.constantFrom('nothing', 'take', 'give', 'give outsider', 'delete', 'change', 'asset'),
    change: fc.constantFrom<Partial<WireAsset>>(
      { name: 'of somebody else' },
      { risks: [1], data: { keyword: 'c' } },
      { search_types: ['ads'], mark: 'of somebody else' },
    ),
    asset: fc.constantFrom(...assetKeys),
    policy: fc.constantFrom(...policyKeys),
  })
  .map(({ act, asset, policy, change }) => (model, state) => {
    const changed = model.assets.get(findAsset(state, asset)?.id ?? 0)
    if (act === 'asset' && changed && model.showsAssets) {
      model.assets.set(changed.id, { ...changed, ...change })
    }
    const uuid = findPolicy(state, policy)?.uuid ?? ''
    const having = model.assigned.get(findAsset(state, asset)?.id ?? 0)
    const there = model.policies.get(uuid)
    if (there === undefined) return
    if (act === 'take') having?.delete(uuid)
    if (act === 'give') having?.add(uuid)
    if (act === 'give outsider') model.assigned.get(outsider)!.add(uuid)
    if (act === 'change') model.policies.set(uuid, { ...there, name: 'of somebody else' })
    if (act !== 'delete') return
    model.policies.delete(uuid)
    for (const others of model.assigned.values()) others.delete(uuid)
  })

interface Run {
  model: Model
  file: { current: () => MonitoringState; save: (state: MonitoringState) => void }
}

function aRun(undescribed: boolean): Run {
  let state = emptyState
  const model = modelService(undescribed)
  model.assigned.set(outsider, new Set())
  return {
    model,
    file: {
      current: () => state,
      // What cannot be written as JSON would not be there at the next run.
      save: (next) => (state = JSON.parse(JSON.stringify(next)) as MonitoringState),
    },
  }
}

const digest = (data: unknown): string => `digest of ${canonicalJson(data)}`

const asked = (): never => ({ turn: { kind: 'command', name: 't', dueSinceMs: 0 } }) as never

/** What the service shows, everything beyond the description included. */
async function sceneOf(
  { model, file }: Run,
  wanted: DesiredState,
  adopt: readonly Adoption[] = [],
): Promise<PlanInput> {
  const state = file.current()
  const actual = await readActual(model.client, asked, state, adopt)
  const uuids = [...actual.policies.keys()]
  const beyond = await readUndescribed(model.client, asked, uuids)
  const read = { desired: wanted, state, actual: { ...actual, ...beyond } }
  return { ...read, state: refreshState(read, digest) }
}

/** What is gone the operator lets be created anew. */
async function planOf(run: Run, wanted: DesiredState): Promise<Step[]> {
  const scene = await sceneOf(run, wanted)
  const createAgain = wanted.policies
    .map(({ key }) => key)
    .filter((key) => {
      const uuid = findPolicy(scene.state, key)?.uuid
      return uuid !== undefined && !scene.actual.policies.has(uuid)
    })
  const state = applyAdoptions(scene, { createAgain })
  run.file.save(state)
  return planChanges({ ...scene, state })
}

async function apply(
  run: Run,
  wanted: DesiredState,
  after: () => void = () => undefined,
): Promise<void> {
  const { model, file } = run
  for (const step of await planOf(run, wanted)) {
    const parts = {
      client: model.client,
      callOptions: asked,
      file,
      cleanPastEvents: false,
      digest,
      now: () => 0,
    }
    await applyStep(step, parts)
    after()
  }
}

/** Keys of the policies that an asset really has, by whatever uuid. */
function policiesOf({ model, file }: Run, asset: string, names: Map<string, string>): Set<string> {
  const state = file.current()
  for (const [key, { uuid }] of Object.entries(state.policies)) names.set(uuid, key)
  const having = model.assigned.get(findAsset(state, asset)?.id ?? 0) ?? new Set<string>()
  return new Set([...having].flatMap((uuid) => names.get(uuid) ?? []))
}

function expectReached(run: Run, wanted: DesiredState): void {
  const { model, file } = run
  const state = file.current()
  for (const { key, body, enabled, policies } of wanted.assets) {
    const asset = model.assets.get(findAsset(state, key)!.id)!
    const is_disabled = enabled === false
    const search_types = body.search_types.toSorted().toReversed()
    const mark = expect.stringMatching(new RegExp(`^of (${asset.id}|somebody else)$`)) as string
    expect(asset).toMatchObject({ ...body, search_types, is_disabled, mark })
    const values = [...model.assigned.get(asset.id)!].map((uuid) => model.policies.get(uuid)!)
    const asWanted = wanted.policies.filter(({ key: policy }) => policies.includes(policy))
    const expected = asWanted.map(({ body: { name, type, value } }) => ({ name, type, value }))
    const found = values.map(({ name, policy_type: type, value }) => ({ name, type, value }))
    expect(found).toHaveLength(expected.length)
    expect(found).toEqual(expect.arrayContaining(expected))
  }
  const left = Object.keys(state.assets).filter(
    (key) => !wanted.assets.some((asset) => asset.key === key),
  )
  for (const key of left) {
    expect(model.assets.get(findAsset(state, key)!.id)).toMatchObject({ is_disabled: true })
  }
  expect(model.policies.size).toBe(wanted.policies.length)
  expect(state).toMatchObject({ retired: [], pending: null })
}

const files = fc.array(fc.tuple(aFile, aDrift), { minLength: 1, maxLength: 4 })

test('one file after the other is reached, whatever others change, and then nothing is left to do', async () => {
  await fc.assert(
    fc.asyncProperty(files, fc.boolean(), async (list, undescribed) => {
      const run = aRun(undescribed)
      for (const [wanted, drift] of list) {
        drift(run.model, run.file.current())
        await apply(run, wanted)
        expectReached(run, wanted)
        expect(await planOf(run, wanted)).toEqual([])
      }
    }),
    { numRuns: runs({ short: 60, long: 300 }) },
  )
})

test('no asset is ever without a policy that it has before and after', async () => {
  await fc.assert(
    fc.asyncProperty(aFile, aFile, fc.boolean(), async (first, second, undescribed) => {
      const run = aRun(undescribed)
      const names = new Map<string, string>()
      await apply(run, first)
      const kept = second.assets.map(({ key, policies }) => {
        const before = policiesOf(run, key, names)
        return { key, policies: policies.filter((policy) => before.has(policy)) }
      })
      await apply(run, second, () => {
        for (const { key, policies } of kept) {
          const now = policiesOf(run, key, names)
          expect(policies.filter((policy) => !now.has(policy))).toEqual([])
        }
      })
    }),
    { numRuns: runs({ short: 60, long: 300 }) },
  )
})

/** What an operator does who finds that the creation without an answer was done. */
async function settle(run: Run, wanted: DesiredState): Promise<void> {
  const { model, file } = run
  const { pending } = file.current()
  if (pending === null) return
  expect(() => refuseUnresolved(file.current(), {})).toThrow(pending.name)
  const { kind, name } = pending
  const adoption: Adoption =
    kind === 'asset'
      ? { kind, name, id: [...model.assets.keys()].at(-1)! }
      : { kind, name, id: [...model.policies.keys()].at(-1)! }
  const state = applyAdoptions(await sceneOf(run, wanted, [adoption]), { adopt: [adoption] })
  const assets = { ...state.assets }
  for (const unseen of findUnseenAssets(wanted, state)) {
    const found = await inspectAsset(unseen, { client: model.client, callOptions: asked })
    assets[unseen.asset.key] = toKnownAsset(found, unseen, digest)
  }
  file.save({ ...state, assets })
}

test('a run that fails anywhere, unsent, refused or unanswered, is gone on with', async () => {
  const failures = fc.tuple(fc.nat(12), fc.constantFrom<Failing>('unsent', 'refused', 'unanswered'))
  await fc.assert(
    fc.asyncProperty(files, failures, fc.boolean(), async (list, [write, when], undescribed) => {
      const run = aRun(undescribed)
      const { model } = run
      for (const [wanted] of list) {
        model.failAt(write, when)
        await apply(run, wanted).catch(() => undefined)
        model.failAt(-1, when)
        const { pending } = run.file.current()
        expect(when === 'unanswered' || pending === null).toBe(true)
        await settle(run, wanted)
        await apply(run, wanted)
        expectReached(run, wanted)
        expect(await planOf(run, wanted)).toEqual([])
      }
    }),
    { numRuns: runs({ short: 60, long: 300 }) },
  )
})

test('an asset that left the file while the answer was lost comes back enabled', async () => {
  const run = aRun(true)
  const body = { name: 'a', type: 'keyword', data: { keyword: 'a' }, search_types: ['leaks'] }
  const asset = { key: 'a', body, written: body, enabled: undefined, policies: [] }
  const file = { assets: [asset], policies: [], cleanPastEvents: false } as unknown as DesiredState
  await apply(run, file)
  run.model.failAt(0, 'unanswered')
  await expect(apply(run, { ...file, assets: [] })).rejects.toThrow(UpstreamError)
  run.model.failAt(-1, 'unanswered')
  await apply(run, { ...file, assets: [] })
  await apply(run, file)
  expectReached(run, file)
})

test('where the server tells who has a policy, nobody outside the file ever loses one that stays in it', async () => {
  const failures = fc.tuple(fc.nat(12), fc.constantFrom<Failing>('unsent', 'refused', 'unanswered'))
  await fc.assert(
    fc.asyncProperty(files, failures, async (list, [write, when]) => {
      const run = aRun(true)
      const { model, file } = run
      const names = new Map<string, string>()
      const keysOfOutsider = (): Set<string> => {
        for (const [key, { uuid }] of Object.entries(file.current().policies)) names.set(uuid, key)
        return new Set([...model.assigned.get(outsider)!].flatMap((uuid) => names.get(uuid) ?? []))
      }
      for (const [wanted, drift] of list) {
        drift(model, file.current())
        const keys = wanted.policies.map(({ key }) => key)
        const before = keys.filter((key) => keysOfOutsider().has(key))
        const expectKept = (): void => {
          const now = keysOfOutsider()
          expect(before.filter((key) => !now.has(key))).toEqual([])
        }
        model.failAt(write, when)
        await apply(run, wanted, expectKept).catch((error: unknown) => {
          if (!(error instanceof UpstreamError)) throw error
        })
        model.failAt(-1, when)
        await settle(run, wanted)
        await apply(run, wanted, expectKept)
        expectKept()
      }
    }),
    { numRuns: runs({ short: 60, long: 300 }) },
  )
})

test('what the service does not describe is used only where it is there', async () => {
  await fc.assert(
    fc.asyncProperty(aFile, aFile, async (first, second) => {
      const run = aRun(false)
      await apply(run, first)
      const kinds = (await planOf(run, second)).map((step) => step.do)
      expect(kinds).not.toContain('update policy')
      expect(kinds).not.toContain('unassign policy')
    }),
  )
})
