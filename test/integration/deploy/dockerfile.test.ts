import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { allowedInBuild, readStages, root } from '../../support/dockerfile.ts'

const stages = readStages()
const [build, packages, image] = stages
const own = stages.flatMap(({ copies }) => copies).filter(({ from }) => from === undefined)

test('there are stages that build and install, and the image itself, all on Node 24', () => {
  expect(stages).toHaveLength(3)
  for (const { instructions } of stages) {
    expect(instructions[0]?.[1]).toMatch(/^node:24-slim\b/)
  }
})

test('every file that is copied exists, and the ignore file lets through just these', () => {
  const sources = [...new Set(own.flatMap((copy) => copy.sources))]
  expect(sources.filter((source) => !existsSync(join(root, source)))).toEqual([])
  expect(allowedInBuild().toSorted()).toEqual(sources.toSorted())
})

test('the image takes dist from the build, production packages by the lock, and no token of a registry', () => {
  expect(image!.copies).toEqual([
    { from: undefined, sources: ['package.json'], target: './' },
    { from: packages!.name, sources: ['/app/node_modules'], target: 'node_modules' },
    { from: build!.name, sources: ['/app/dist'], target: 'dist' },
  ])
  const runs = stages.map(({ instructions }) =>
    instructions.filter(([instruction]) => instruction === 'RUN').map(([, rest]) => rest),
  )
  expect(runs[1]).toEqual(['npm ci --omit=dev --ignore-scripts'])
  expect(runs[2]).toEqual([])
})

test('the image runs without root, stops on SIGTERM and says how it is', () => {
  const said = new Map(image!.instructions)
  expect(said.get('USER')).toBe('node')
  expect(said.get('STOPSIGNAL')).toBe('SIGTERM')
  expect(said.get('HEALTHCHECK')).toContain('/healthz')
  expect(said.get('ENTRYPOINT')).toBe('["node", "--disable-sigusr1", "dist/main.js"]')
})
