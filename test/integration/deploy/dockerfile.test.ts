import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { totalmem } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readStages, root } from '../../support/dockerfile.ts'

const text = readFileSync(join(root, 'deploy/Dockerfile'), 'utf8')
const stages = readStages()
const [build, image] = stages
const said = new Map(image!.instructions)
const entrypoint = JSON.parse(said.get('ENTRYPOINT')!) as string[]
test('the base is the Node that the tests run on, and can be given by its digest', () => {
  const { devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    devDependencies: { node: string }
  }
  expect(text).toMatch(/^ARG NODE_IMAGE=\S+$/m)
  expect(text).toContain(`ARG NODE_IMAGE=node:${devDependencies.node}-slim\n`)
})

test('the image takes dist from the build, made by the lock, and no token of a registry', () => {
  expect(image!.copies).toEqual([
    { from: undefined, sources: ['package.json'], target: './' },
    { from: build!.name, sources: ['/app/dist'], target: 'dist' },
  ])
  const runs = stages.map(({ instructions }) =>
    instructions.filter(([instruction]) => instruction === 'RUN').map(([, rest]) => rest),
  )
  const checked = 'node .ci/check-lock.mjs && npm install --no-save'
  expect(runs[0]![0]).toBe(`${checked} --ignore-scripts`)
  expect(runs[1]).toEqual([])
})

test('the build may read what it copies, and no more', () => {
  const ignored = readFileSync(join(root, 'deploy/Dockerfile.dockerignore'), 'utf8').split('\n')
  const admitted = ignored.filter((line) => line.startsWith('!')).map((line) => line.slice(1))
  const copied = stages.flatMap(({ copies }) => copies.filter(({ from }) => from === undefined))
  expect(ignored.filter((line) => line !== '' && !/^[#!]/.test(line))).toEqual(['*'])
  const sources = copied.flatMap(({ sources: one }) => one)
  expect(admitted.toSorted()).toEqual([...new Set(sources)].toSorted())
})

test('the image runs without root, stops on SIGTERM and says how it is', () => {
  expect(said.get('USER')).toBe('node')
  expect(said.get('STOPSIGNAL')).toBe('SIGTERM')
  expect(said.get('HEALTHCHECK')).toContain('/healthz')
  expect(entrypoint.slice(0, 2)).toEqual(['node', '--disable-sigusr1'])
  expect(entrypoint).toEqual(
    expect.arrayContaining(['--max-semi-space-size=16', '--heap-growing-percent=40']),
  )
  expect(entrypoint.at(-1)).toBe('dist/main.js')
})

test('Node takes the options of the image, and its heap ends below what the container may have', () => {
  const options = entrypoint.slice(1, -1)
  const probe = 'v8.getHeapStatistics().heap_size_limit'
  const limitWith = (more: string[]): number =>
    Number(execFileSync(process.execPath, [...more, '-p', probe], { encoding: 'utf8' }))
  const may = Math.min(totalmem(), process.constrainedMemory() || Infinity)
  expect(limitWith(options) / may).toBeGreaterThan(0.5)
  expect(limitWith(options) / may).toBeLessThan(0.75)
})
