import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { installByApt, isInstalled } from '../../support/tools.ts'

const unit = readFileSync(
  join(import.meta.dirname, '../../../deploy/systemd/tocsin.service'),
  'utf8',
)

/** What a key of the unit says; a list where it stands there more than once. */
function said(key: string): string[] {
  return [...unit.matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].map(([, value = '']) => value)
}

const [node, ...words] = said('ExecStart')[0]!.split(' ')
const main = words.indexOf('/opt/tocsin/dist/main.js')
const options = words.slice(0, main)

test('the unit starts the daemon without a debugger, and bounds its end', () => {
  expect(node).toBe('/usr/bin/node')
  expect(options).toContain('--disable-sigusr1')
  expect(options).toEqual(
    expect.arrayContaining(['--max-semi-space-size=16', '--heap-growing-percent=40']),
  )
  expect(words.slice(main + 1)).toEqual(['run', '--config', '/etc/tocsin/tocsin.yaml'])
  expect(Number(said('TimeoutStopSec')[0])).toBeGreaterThan(10)
  expect(said('RestartPreventExitStatus')).toEqual(['2'])
})

test('a reload waits for the daemon’s answer, and fails where the daemon refuses', () => {
  expect(said('Type')).toEqual(['exec'])
  expect(said('ExecReload')).toEqual([
    '/usr/bin/node --disable-sigusr1 /opt/tocsin/dist/main.js reload --config /etc/tocsin/tocsin.yaml',
  ])
})

test('Node takes its options, and the heap ends below what the service may have', () => {
  const probe = 'v8.getHeapStatistics().heap_size_limit'
  const heap = execFileSync(process.execPath, [...options, '-p', probe], { encoding: 'utf8' })
  const [memory = ''] = said('MemoryMax')
  expect(memory).toMatch(/^\d+G$/)
  const most = Number.parseInt(memory, 10) * 2 ** 30
  expect(Number(heap)).toBeGreaterThan(2 ** 30)
  expect(Number(heap)).toBeLessThan(0.75 * most)
})

test.each([
  ['LimitCORE', '0'],
  ['NoNewPrivileges', 'yes'],
  ['CapabilityBoundingSet', ''],
  ['ProtectSystem', 'strict'],
  ['ProtectHome', 'yes'],
  ['PrivateTmp', 'yes'],
  ['PrivateDevices', 'yes'],
  ['PrivateMounts', 'yes'],
  ['DynamicUser', 'yes'],
  ['UMask', '0077'],
  ['TasksMax', '128'],
  ['RuntimeDirectory', 'tocsin'],
  ['RuntimeDirectoryMode', '0700'],
])('%s is %j', (key, value) => {
  expect(said(key)).toEqual([value])
})

test('V8 may compile while it runs, and no secret stands in the unit', () => {
  expect(said('MemoryDenyWriteExecute')).toEqual([])
  expect(said('LoadCredential')).toEqual(['api-key:/etc/tocsin/secrets/api-key'])
  expect(said('Environment')).toEqual(['NODE_ENV=production'])
})

const analyze = 'systemd-analyze'

describe.skipIf(!isInstalled(analyze, installByApt('systemd')))('systemd', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tocsin-unit-'))
  const path = join(folder, 'tocsin.service')
  writeFileSync(path, unit.replace('/usr/bin/node', process.execPath))
  afterAll(() => rmSync(folder, { recursive: true }))

  test('finds nothing wrong with it', () => {
    const { stdout, stderr } = spawnSync(analyze, ['verify', path], { encoding: 'utf8' })
    const ours = `${stdout}${stderr}`.split('\n').filter((line) => line.includes('tocsin'))
    expect(ours).toEqual([])
  })

  test('rates its exposure as docs/install.md says', () => {
    const args = ['security', '--offline=yes', '--no-pager', path]
    const { stdout } = spawnSync(analyze, args, { encoding: 'utf8' })
    const [, exposure] = /Overall exposure level for \S+: ([\d.]+)/.exec(stdout) ?? []
    const page = readFileSync(join(import.meta.dirname, '../../../docs/install.md'), 'utf8')
    const [, stated] = /rates its exposure (\d\.\d) of 10/.exec(page) ?? []
    expect(Number(exposure)).toBeLessThanOrEqual(Number(stated))
  })
})
