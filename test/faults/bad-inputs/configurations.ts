/** Files that are no configuration: the examples of mistakes, and the README's file broken line by line. */
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigError } from '../../../src/config/config.ts'
import { parseConfig } from '../../../src/config/load.ts'
import type { BadInput } from './bad-input.ts'

export const fixtures = join(import.meta.dirname, '../../fixtures/config')
const usual = readFileSync(join(import.meta.dirname, '../../../config/tocsin.yaml'), 'utf8')

/** What the files speak of; the daemon is started with it. */
export const variables = {
  EMPTY: '',
  WORD: 'seven',
  TOCSIN_BASE_URL: 'https://api.example.com',
  TOCSIN_API_KEY: 'the-secret-key',
  SLACK_WEBHOOK_URL: 'https://hooks.example.com/the-secret-token',
  SMTP_URL: 'smtp://user:the-secret-password@mail.example.com',
  SIEM_SECRET: 'the-secret-signature',
}

/** A key of the file with its value, on a line of its own. */
const keyLine = /^( *(?:- )?)(\w+):( .*)?$/

const damages: ((line: RegExpExecArray) => string)[] = [
  ([, indent, key, value = '']) => `${indent}${key}_x:${value}`,
  ([, indent, key]) => `${indent}${key}: {a: {b: [1, {c: 2}]}}`,
  ([, indent, key]) => `${indent}${key}: "\\u0000\\u202e${'x'.repeat(70)}"`,
]

/** Distinct, and each refused: a damage that makes another valid file is none. */
export function badConfigurations(): BadInput[] {
  const examples = readdirSync(join(fixtures, 'bad'))
    .filter((file) => file.endsWith('.yaml'))
    .map((file) => ({ name: file, content: readFileSync(join(fixtures, 'bad', file), 'utf8') }))
  const lines = usual.split('\n')
  const places = lines.flatMap((line, at) => {
    const found = keyLine.exec(line)
    return found ? [{ at, found }] : []
  })
  const damaged = places.map(({ at, found }, index) => {
    const damage = damages[index % damages.length] as (typeof damages)[number]
    const name = `config/tocsin.yaml with line ${at + 1} damaged`
    return { name, content: lines.with(at, damage(found)).join('\n') }
  })
  return [...examples, ...damaged.filter(({ content }) => isRefused(content))]
}

function isRefused(content: string): boolean {
  try {
    parseConfig(content, { file: 'tocsin.yaml', env: variables })
    return false
  } catch (error) {
    return error instanceof ConfigError
  }
}
