import { expect, test } from 'vitest'
import { findNodeMistake } from '../../../src/cli/version.ts'

test.each(['22.19.0', '22.20.1', '24.0.0', '100.1.0'])('Node %s is new enough', (version) => {
  expect(findNodeMistake(version)).toBeUndefined()
})

test.each(['22.18.9', '22.9.0', '20.20.2', '9.30.0'])('Node %s is too old', (version) => {
  expect(findNodeMistake(version)).toContain(
    `needs Node 22.19 or newer, and this is Node ${version} `,
  )
})
