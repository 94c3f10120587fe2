/** The file of the token that a reload takes: where it is, what it replaces, who is trusted. */
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { formatMistake, ConfigError } from '../../../src/config/config.ts'
import { parseConfig } from '../../../src/config/load.ts'
import {
  defaultTokenFile,
  readReloadAccess,
  removeReloadAccess,
  writeReloadAccess,
} from '../../../src/ops/reload-access.ts'

const root = mkdtempSync(join(tmpdir(), 'tocsin-access-'))
afterAll(() => rmSync(root, { recursive: true }))
const isRoot = process.getuid?.() === 0
const access = { url: 'http://127.0.0.1:9464', token: 'Pq7Zr2Lx9Vt4Kw8N' }
let folder: string
let count = 0

beforeEach(() => {
  folder = join(root, String((count += 1)))
  mkdirSync(folder, { mode: 0o700 })
})

const at = (name: string): string => join(folder, name)

function holding(name: string, text: string, mode = 0o600): string {
  writeFileSync(at(name), text, { mode })
  chmodSync(at(name), mode) // whatever the umask
  return at(name)
}

describe('the place', () => {
  const folderOf = (env: Record<string, string>): string =>
    dirname(defaultTokenFile('tocsin.yaml', env))

  test('is the folder of the unit, or else that of the user among the temporary files', () => {
    const ofUser = join(tmpdir(), `tocsin-${process.getuid?.()}`)
    expect(folderOf({ RUNTIME_DIRECTORY: '/run/t:/run/u' })).toBe('/run/t')
    expect(folderOf({ RUNTIME_DIRECTORY: 'run' })).toBe(ofUser)
    expect(folderOf({})).toBe(ofUser)
  })
})

describe('writing', () => {
  test('replaces the token of another daemon', () => {
    const path = at('made/token')
    writeReloadAccess(path, { ...access, token: 'of-another' })
    writeReloadAccess(path, access)
    expect(readReloadAccess(path)).toEqual(access)
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(statSync(at('made')).mode & 0o777).toBe(0o700)
  })

  test.each(['', 'fw_key', '{}', '{"url":"http://127.0.0.1:1","token":"t","more":1}'])(
    'leaves a file alone that holds %j',
    (text) => {
      const path = holding('precious', text)
      expect(() => writeReloadAccess(path, access)).toThrow(
        `${path} holds something else than the token of a daemon; name a file that nothing else uses`,
      )
      expect(readFileSync(path, 'utf8')).toBe(text)
    },
  )

  test.runIf(isRoot)('leaves the token of another user alone, and says whose it is not', () => {
    const path = holding('token', JSON.stringify(access))
    chmodSync(root, 0o755)
    chmodSync(folder, 0o777)
    const text = `
http: {token_file: token}
accounts: {main: {base_url: https://api.example.com, api_key: fw_key}}
feeds: {brand: {type: events, identifier_group: 7}}
sinks: {soc: {type: slack, url: 'https://hooks.example.com/x'}}
route: {sinks: [soc]}
`
    process.seteuid!(1001)
    try {
      // whoever checks need not be the daemon's user
      parseConfig(text, { file: at('tocsin.yaml'), env: {} })
      expect(() => writeReloadAccess(path, { ...access, token: 'mine' })).toThrow(
        `${path} belongs to somebody else; name a file that nothing else uses`,
      )
    } finally {
      process.seteuid!(0)
    }
    expect(readReloadAccess(path)).toEqual(access)
  })

  test('neither follows nor replaces a link', () => {
    const target = holding('target', JSON.stringify(access))
    symlinkSync(target, at('link'))
    expect(() => writeReloadAccess(at('link'), access)).toThrow('is a link')
    expect(lstatSync(at('link')).isSymbolicLink()).toBe(true)
  })

  test('neither uses nor trusts a folder among the temporary files that others may enter, or that is a link', () => {
    vi.stubEnv('TMPDIR', folder)
    onTestFinished(() => void vi.unstubAllEnvs())
    mkdirSync(at('open'))
    chmodSync(at('open'), 0o777)
    symlinkSync(at('open'), at('link'))
    for (const use of [readReloadAccess, (path: string) => writeReloadAccess(path, access)]) {
      expect(() => use(at('open/token'))).toThrow(/others may enter it \(mode 777\)/)
      expect(() => use(at('link/token'))).toThrow(/it is a symbolic link/)
    }
    expect(readdirSync(at('open'))).toEqual([])
  })

  test('check refuses such a file with its place and what to do', () => {
    holding('api-key', 'fw_key')
    const text = `
http: {token_file: api-key}
accounts: {main: {base_url: https://api.example.com, api_key_file: api-key}}
feeds: {brand: {type: events, identifier_group: 7}}
sinks: {soc: {type: slack, url: 'https://hooks.example.com/x'}}
route: {sinks: [soc]}
`
    const load = (yaml: string): string[] => {
      try {
        parseConfig(yaml, { file: at('tocsin.yaml'), env: {} })
        return []
      } catch (error) {
        if (error instanceof ConfigError) return error.mistakes.map(formatMistake)
        throw error
      }
    }
    expect(load(text)).toEqual([
      `${at('tocsin.yaml')}:2:8 http.token_file: ${at('api-key')} holds something else than the token of a daemon; name a file that nothing else uses, such as /run/tocsin/reload`,
    ])
    mkdirSync(at('run'))
    expect(load(text.replace('token_file: api-key', 'token_file: run'))).toEqual([
      `${at('tocsin.yaml')}:2:8 http.token_file: ${at('run')} is a link, a folder or a device; name a file that nothing else uses, such as /run/tocsin/reload`,
    ])
    expect(load(text.replace('token_file: api-key', 'token_file: reload'))).toEqual([])
    holding('reload', JSON.stringify(access))
    expect(load(text.replace('token_file: api-key', 'token_file: reload'))).toEqual([])
  })
})

describe('removing', () => {
  test('takes the own token and no other', () => {
    const path = at('token')
    writeReloadAccess(path, access)
    removeReloadAccess(path, 'of-another')
    expect(existsSync(path)).toBe(true)
    removeReloadAccess(path, access.token)
    expect(existsSync(path)).toBe(false)
  })

  test('follows no link, and leaves what others may have written', () => {
    const target = holding('target', JSON.stringify(access))
    symlinkSync(target, at('link'))
    removeReloadAccess(at('link'), access.token)
    expect(lstatSync(at('link')).isSymbolicLink()).toBe(true)
    const open = holding('open', JSON.stringify(access), 0o620)
    removeReloadAccess(open, access.token)
    expect(existsSync(open)).toBe(true)
  })
})

describe('reading', () => {
  test('trusts no link, no file that others may read or change, and no other address', () => {
    const target = holding('target', JSON.stringify(access))
    symlinkSync(target, at('link'))
    expect(() => readReloadAccess(at('link'))).toThrow('is a link')
    for (const mode of [0o640, 0o620, 0o604, 0o602])
      expect(() => readReloadAccess(holding('open', JSON.stringify(access), mode))).toThrow(
        `may ${mode & 0o044 ? 'read' : 'change'}`,
      )
    for (const url of ['https://evil.example/x', `${access.url}/x`, `x${access.url}`])
      expect(() => readReloadAccess(holding('far', JSON.stringify({ ...access, url })))).toThrow(
        'holds no address and token',
      )
    expect(readReloadAccess(at('none'))).toBeUndefined()
  })

  test.runIf(isRoot)("root may use what another user's daemon wrote, and no other user may", () => {
    const path = holding('token', JSON.stringify(access))
    chownSync(path, 1001, 1001)
    expect(readReloadAccess(path)).toEqual(access)
    chmodSync(folder, 0o755)
    chownSync(holding('own', JSON.stringify(access), 0o600), 1002, 1002)
    // from within: another user may not come through the folders above
    const before = process.cwd()
    process.chdir(folder)
    process.seteuid!(1001)
    try {
      expect(readReloadAccess('token')).toEqual(access)
      expect(readReloadAccess('own')).toBeUndefined()
    } finally {
      process.seteuid!(0)
      process.chdir(before)
    }
  })
})
