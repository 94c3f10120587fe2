import { spawnSync } from 'node:child_process'
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

test('a reload is a signal, which any systemd of 250 sends', () => {
  expect(said('Type')).toEqual(['exec'])
  expect(said('ExecReload')).toEqual(['/bin/kill -HUP $MAINPID'])
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
