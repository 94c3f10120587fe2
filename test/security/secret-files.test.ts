/** Files that a configuration names are read as files: none is waited for, fills the memory, or is quoted. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { addressOptions } from '../../src/redis/connection-options.ts'
import { secretFromFile, secretFromText } from '../../src/lib/config/secret.ts'
import { tocsin } from '../integration/cli/tocsin.ts'

const main = join(import.meta.dirname, '../../src/main.ts')
const folder = mkdtempSync(join(tmpdir(), 'tocsin-files-'))
const at = (name: string): string => join(folder, name)
afterAll(() => rmSync(folder, { recursive: true }))

beforeAll(() => {
  spawnSync('mkfifo', [at('pipe')])
  mkdirSync(at('folder'))
  writeFileSync(at('huge'), 'x')
  truncateSync(at('huge'), 2 ** 30)
  writeFileSync(at('secret'), ' Zanzibar-key \n')
  symlinkSync('secret', at('link'))
  symlinkSync('/dev/zero', at('link-to-zero'))
  writeFileSync(at('passwd'), 'root:Zanzibar:0:0:root:/root:/bin/bash\nhost name\n')
})

interface Checked {
  code: number | null
  said: string
}

/** In a process of its own: whoever waits for a pipe waits whole. */
async function check(path: string): Promise<Checked> {
  const child = spawn(process.execPath, [main, 'check', path], {
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 50_000,
    killSignal: 'SIGKILL',
  })
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)])
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  return { code: child.exitCode, said: `${out}${err}` }
}

type Files = Record<'key' | 'proxy' | 'authorities' | 'slack' | 'smtp' | 'hook', string>

/** `all`: the file that each key names, but for `some`. */
function configuration(all: string, some: Partial<Files> = {}): string {
  const every = { key: all, proxy: all, authorities: all, slack: all, smtp: all, hook: all }
  const files = { ...every, ...some }
  const path = at('tocsin.yaml')
  writeFileSync(
    path,
    `redis: {url: 'redis://127.0.0.1:1'}
accounts:
  main: {base_url: 'https://api.example.com', api_key_file: '${files.key}', proxy_file: '${files.proxy}', ca_file: '${files.authorities}'}
feeds:
  brand: {type: events, identifier_group: 1}
sinks:
  soc: {type: slack, url_file: '${files.slack}'}
  oncall: {type: email, smtp_file: '${files.smtp}', from: a@example.com, to: [b@example.com]}
  siem: {type: webhook, url_file: '${files.hook}'}
route: {sinks: [soc]}
`,
  )
  return path
}

describe('check, of a configuration', () => {
  test('that names what is no file of a secret ends, and says so of each', async () => {
    const some = { key: 'pipe', slack: 'huge', smtp: 'folder', hook: 'link-to-zero' }
    const path = configuration('/dev/zero', some)
    const { code, said } = await check(path)
    expect(said).toMatch(/api_key_file: the file \S+pipe is no regular file/)
    expect(said).toMatch(/proxy_file: the file \/dev\/zero is no regular file/)
    expect(said).toMatch(/ca_file: the file \/dev\/zero is no regular file/)
    expect(said).toMatch(/soc.url_file: the file \S+huge is longer than 64 KiB/)
    expect(said).toMatch(/smtp_file: \S+folder is a folder; name a file in it/)
    expect(said).toMatch(/siem.url_file: the file \S+link-to-zero is no regular file/)
    expect(code).toBe(2)
  })

  test('that names somebody else’s file quotes nothing of it', async () => {
    const up = '../'.repeat(folder.split('/').length + 2)
    const passwd = `${up}${at('passwd').slice(1)}`
    const path = configuration(passwd)
    for (const form of ['text', 'json']) {
      const { code, out, err } = await tocsin('check', path, '--output', form)
      const said = `${out}${err}`
      expect(said).toContain('passwd')
      expect(said).not.toMatch(/Zanzibar|root:|host name|bash/)
      expect(code).toBe(2)
    }
  })

  test.each(['/dev/zero', 'huge', 'link-to-zero'])('that is %s itself ends', async (name) => {
    const { code, err } = await tocsin('check', name.startsWith('/') ? name : at(name))
    expect(err).toContain('longer than 4 MiB')
    expect(code).toBe(2)
  })
})

test('a configuration may come through a pipe', async () => {
  const path = configuration(at('none'), { key: at('link') })
  const command = `exec "$0" "$1" check <(cat "$2")`
  const { stdout, stderr, status } = spawnSync(
    'bash',
    ['-c', command, process.execPath, main, path],
    { encoding: 'utf8' },
  )
  expect(`${stdout}${stderr}`).toContain('there is no such file below')
  expect(`${stdout}${stderr}`).not.toContain('api_key_file')
  expect(status).toBe(2)
})

describe('a secret that is used', () => {
  test('is read through a link, as mounted secrets are', () => {
    expect(secretFromFile(at('link')).reveal()).toBe('Zanzibar-key')
  })

  test.each(['/dev/zero', 'huge', 'folder'])(
    'is not read from %s, which it is named in',
    (name) => {
      const path = name.startsWith('/') ? name : at(name)
      expect(() => secretFromFile(path).reveal()).toThrow(/regular file|64 KiB|EISDIR/)
    },
  )
})

test('a certificate of Redis that has become a pipe since does not hold up a connection', () => {
  const config = {
    url: secretFromText('rediss://127.0.0.1:1'),
    caFile: at('pipe'),
    prefix: 'tocsin',
    allowUnsafe: false,
  }
  expect(() => addressOptions(config)).toThrow('is no regular file')
})
