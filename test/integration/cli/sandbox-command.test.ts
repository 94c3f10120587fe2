import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { redisForTests } from '../../support/ledger.ts'
import { aFile, startTocsin, tocsin } from './tocsin.ts'

const tests = redisForTests()

test('--write-config writes a configuration, with a Redis of its own, and prints none', async () => {
  const file = join(aFile('folder', ''), '../sandbox.yaml')
  const args = ['sandbox', '--port=0', '--smtp-port=0', '--rate=0']
  const { child, says, ended } = startTocsin(...args, '--write-config', file)
  await says('Ctrl-C')
  expect((await tocsin('check', file)).code).toBe(0)
  expect(statSync(file).mode & 0o777).toBe(0o600)
  const written = parse(readFileSync(file, 'utf8')) as { redis: unknown }
  expect(written.redis).toEqual({ embedded: './data-sandbox' })
  child.kill('SIGTERM')
  const { out } = await ended
  expect(out).toContain(`tocsin run --config ${file}`)
  expect(out).not.toMatch(/^(?:accounts|sinks|route):/m)
  const again = startTocsin(...args, '--write-config', file)
  await again.says('Ctrl-C') // what a sandbox wrote, another one may replace
})

test('--write-config replaces no file of anybody else', async () => {
  const mine = aFile('tocsin.yaml', 'accounts: {}\n')
  const args = ['--port=0', '--smtp-port=0', '--write-config', mine]
  const { code, out, err } = await tocsin('sandbox', ...args)
  expect({ code, out }).toEqual({ code: 2, out: '' })
  expect(err).toContain('is not of a sandbox; name another file')
  expect(readFileSync(mine, 'utf8')).toBe('accounts: {}\n')
})

test('what it prints is all that init asks for', async () => {
  const { child, says, soFar, ended } = startTocsin('sandbox', '--port=0', '--smtp-port=0')
  await says('Ctrl-C')
  const find = (pattern: RegExp): string => pattern.exec(soFar())?.[1] ?? ''
  const options = {
    'base-url': find(/runs: (\S+) /),
    'link-host': find(/--link-host (\S+)"/),
    'api-key-file': aFile('key', find(/API key (\S+)\)/)),
    'slack-url-file': aFile('slack', find(/Slack +(\S+)/)),
    'teams-url-file': aFile('teams', find(/Teams +(\S+)/)),
    'pagerduty-url': find(/PagerDuty +(\S+)/),
    'pagerduty-key-file': aFile('duty', find(/PagerDuty.*key (\w+)\)/)),
    'webhook-url-file': aFile('webhook', find(/webhook +(\S+)/)),
    'webhook-secret-file': aFile('secret', find(/signed by (\S+)\)/)),
    'smtp-url-file': aFile('smtp', find(/mail.*\((smtp:\S+),/)),
    'redis-url-file': aFile('redis', tests.server.url),
  }
  const given = Object.entries(options).map(([option, value]) => `--${option}=${value}`)
  const others = ['--group=1042', '--mail-from=a@example.com', '--mail-to=b@example.com', '--send']
  const file = join(aFile('folder', ''), '../tocsin.yaml')
  const { code, err } = await tocsin('init', file, '--allow-private', ...given, ...others)
  expect(err.match(/took a TEST message/g)).toHaveLength(5)
  expect(code).toBe(0)
  // links of its events lead there
  expect(readFileSync(file, 'utf8')).toContain('link_hosts: ["app.example.com"]')
  child.kill('SIGTERM')
  await ended
})
