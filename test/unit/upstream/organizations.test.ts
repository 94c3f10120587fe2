import { describe, expect, test } from 'vitest'
import { createOrganizations } from '../../../src/upstream/access/organizations.ts'
import { anAccount } from '../../support/replica.ts'

describe('accounts of one organization', () => {
  const slow = anAccount({ name: 'slow', limits: { search: 1, basic: 4 } })
  const fast = anAccount({ name: 'fast', limits: { search: 3, basic: 2 } })

  test('share a lane, in which the lowest limit holds', () => {
    const organizations = createOrganizations([slow, fast])
    organizations.learn('slow', 7)
    organizations.learn('fast', 7)
    const lane = organizations.laneFor('fast', 'search')
    expect(lane).toEqual(organizations.laneFor('slow', 'search'))
    expect(organizations.limitFor(lane)).toBe(1)
    expect(organizations.limitFor(organizations.laneFor('slow', 'basic'))).toBe(2)
  })

  test('share the lane of their base URL while nobody knows better', () => {
    const organizations = createOrganizations([slow, { ...fast, baseUrl: 'HTTP://127.0.0.1:9/' }])
    const lane = organizations.laneFor('slow', 'search')
    expect(lane).toEqual(organizations.laneFor('fast', 'search'))
    expect(lane.organization).toBe(lane.baseUrl)
  })

  test('are parted by their organization, not by their base URL', () => {
    const organizations = createOrganizations([slow, fast])
    organizations.learn('slow', 7)
    organizations.learn('fast', 8)
    const [one, two] = ['slow', 'fast'].map((name) => organizations.laneFor(name, 'search'))
    expect(one!.organization).not.toBe(two!.organization)
    expect(one!.baseUrl).toBe(two!.baseUrl)
    expect(organizations.limitFor(two!)).toBe(3)
  })

  test('keep the configured id whatever the service tells', () => {
    const organizations = createOrganizations([{ ...slow, organizationId: 1 }])
    organizations.learn('slow', 7)
    expect(organizations.idFor('slow')).toBe(1)
  })
})
