/** Each operation of the service has a function, a command and a test, and docs/api-notes.md says which. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { runProgram } from '../../src/cli/program.ts'
import type { UpstreamClient } from '../../src/upstream/client.ts'
import { createOperations } from '../../src/upstream/resources/operations.ts'
import { createUndocumentedPolicyOperations } from '../../src/upstream/resources/policies.ts'

const root = join(import.meta.dirname, '../..')
const heading = '## Every operation of the service'
const page = readFileSync(join(root, 'docs/api-notes.md'), 'utf8')

/** The operations of the API's description, under the names that it gives their parameters. */
const described = [
  'POST /tokens/generate',
  'GET /tokens/test',
  'POST /firework/v4/credentials/global/_search',
  'GET /firework/v3/identifiers/{identifier_id}/feed/credentials',
  'POST /firework/v4/events/global/_search',
  'POST /firework/v4/events/identifier_groups/{identifier_group_id}/_search',
  'GET /firework/v4/events/',
  'GET /firework/v4/events/_expand',
  'GET /firework/v2/search/',
  'POST /firework/v2/search/',
  'POST /firework/v2/assets/',
  'PUT /firework/v2/assets/{asset_id}',
  'POST /firework/v2/assets/{asset_id}/toggle',
  'GET /firework/v2/assets/groups/{assets_group_id}/alerts',
  'POST /firework/v4/matching_policies',
  'GET /firework/v4/matching_policies/{policy_uuid}',
  'DELETE /firework/v4/matching_policies/{policy_uuid}',
  'POST /firework/v4/matching_policies/{policy_uuid}/assignments',
  'GET /firework/v4/matching_policies/by_identifier_id/{identifier_id}',
  'GET /firework/v4/threat_flow/reports/requests/{request_info_id}',
  'GET /firework/v4/threat_flow/reports/{report_id}',
  'POST /firework/v2/organizations/{organization_id}/tenants',
]

/** Operations that only the public documents have, under the names that these give their parameters. */
const published = [
  'POST /firework/v4/events/tenant/_search',
  'POST /firework/v4/events/identifiers/{identifier_id}/_search',
  'GET /firework/v4/events/filters/types',
  'GET /firework/v4/events/filters/severities',
  'GET /firework/v2/activities/',
  'GET /firework/v2/me/feed/credentials',
  'POST /firework/v2/me/feed/credentials',
  'POST /astp/v2/credentials/_search',
  'GET /firework/v2/me/tenants',
  'GET /firework/v4/identifiers/',
  'GET /firework/v3/identifiers/',
  'GET /firework/v3/identifiers/groups',
  'GET /firework/v2/assets/groups/',
  'POST /firework/v4/threat_flow/reports/requests',
  'GET /firework/v4/threat_flow/reports/',
  'POST /firework/v4/events/actions',
  'POST /firework/v4/credentials/actions',
  'PATCH /firework/v4/events/tenant/metadata',
  'GET /firework/v2/assets/{asset_id}',
  'DELETE /firework/v2/assets/{asset_id}',
  'GET /firework/v4/threat_flow/reports/{report_id}/download',
  'GET /firework/v4/healthz/',
  'GET /firework/v4/alerts/',
  'POST /astp/urls/by_credential_hash',
  'POST /astp/v2/cookies/_search',
  'POST /firework/v4/identifiers/',
  'GET /firework/v4/identifiers/{identifier_id}',
  'PUT /firework/v4/identifiers/{identifier_id}',
  'DELETE /firework/v4/identifiers/{identifier_id}',
]

interface Row {
  operation: string
  functions: string[]
  commands: string[]
  files: string[]
}

const rows = rowsOf(page.split(`${heading}\n`)[1]?.split('\n## ')[0] ?? '')

function rowsOf(section: string): Row[] {
  const lines = section.split('\n').filter((line) => line.startsWith('| `'))
  return lines.map((line) => {
    const [operation = [], functions = [], commands = [], files = []] = line
      .split('|')
      .slice(1)
      .map(codesIn)
    return { operation: operation.join(), functions, commands, files }
  })
}

function codesIn(cell: string): string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code)
}

/** Built as the client builds them; nothing is asked of anybody before one is called. */
function functionsOfClient(): { all: string[]; undescribed: string[] } {
  const account = { policyPaths: 'auto' } as const
  const none = undefined as never
  const operations = createOperations({ account, capabilities: none, parts: none })
  const beside: (keyof UpstreamClient)[] = ['testToken', 'checkHealth']
  return {
    all: [...beside, ...Object.keys(operations)],
    undescribed: Object.keys(createUndocumentedPolicyOperations(none, none)),
  }
}

async function helpOf(words: string[]): Promise<string> {
  const [input, output, errors] = [new PassThrough(), new PassThrough(), new PassThrough()]
  const stop = new AbortController().signal
  await runProgram([...words, '--help'], { input, output, errors, stop })
  output.end()
  return text(output)
}

const { all, undescribed } = functionsOfClient()

test('every operation of the description and of the public documents has one row', () => {
  expect(rows.map(({ operation }) => operation)).toEqual([...described, ...published])
})

test('every function of the client has a row, but those that the description does not know', () => {
  const named = new Set(rows.flatMap(({ functions }) => functions))
  expect(undescribed.length).toBeGreaterThan(0)
  expect(all.filter((name) => !named.has(name)).toSorted()).toEqual(undescribed.toSorted())
})

describe.each(rows)('$operation', ({ functions, commands, files }) => {
  test('is a function of the client', () => {
    expect(functions).toHaveLength(1)
    expect(all).toEqual(expect.arrayContaining(functions))
  })

  test('is a command that there is, with the option that it needs', async () => {
    expect(commands).not.toEqual([])
    for (const command of commands) {
      const words = command.split(' ').filter((word) => !word.startsWith('--'))
      const help = await helpOf(words)
      expect(help).toMatch(new RegExp(`^Usage: tocsin ${words.join(' ')} `))
      expect(help).not.toMatch(/^Commands:/m)
      const options = command.split(' ').filter((word) => word.startsWith('--'))
      for (const option of options) expect(help).toMatch(new RegExp(`^  ${option}[ ,]`, 'm'))
    }
  })

  test('is called in a test that there is', () => {
    expect(files).not.toEqual([])
    const paths = files.map((file) => join(root, 'test/integration/upstream', file))
    expect(paths.filter((path) => !existsSync(path))).toEqual([])
    for (const path of paths) {
      const source = readFileSync(path, 'utf8')
      for (const name of functions) expect(source).toContain(`.${name}(`)
    }
  })
})

test('the page stays short enough to be read', () => {
  const architecture = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8')
  expect(architecture.split('\n').length).toBeLessThanOrEqual(150)
})
